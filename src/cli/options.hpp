// Options that several subcommands share, and what they are turned into.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "concord/cli/bytes.hpp"
#include "concord/cli/command.hpp"
#include "concord/cli/dataset.hpp"
#include "concord/cli/input_files.hpp"
#include "concord/cli/model_file.hpp"
#include "concord/cli/validator.hpp"
#include "concord/concord.hpp"

namespace concord::cli {

/// Detects before hours of work that a file cannot be written at their end: its folder does not exist, it cannot be
/// made there, or it is not a regular file. An empty name means no file. Throws IoError.
void require_writable(const std::string& file);
/// The same of a file that is appended to, which may be a device. Throws IoError.
void require_appendable(const std::string& file);
/// Throws ArgumentError if the name of a file for weights ends as those of another format do.
void require_safetensors_name(std::string_view option, const std::string& file);
/// The files that these options write must differ, because one file cannot hold two results. Devices, such as
/// /dev/null, and empty names do not count. Throws ArgumentError.
void require_different(std::initializer_list<std::pair<std::string_view, std::string>> files);

/// --permit: differences between a file of weights and the network.
struct PermitOption {
  std::vector<std::string> patterns;  // "missing=fc.*"
  void add(CLI::App& command);
  /// Throws ArgumentError for a text that is neither missing=PATTERN nor extra=PATTERN.
  [[nodiscard]] io::LoadOptions get() const;
  /// Throws ArgumentError if there are patterns, and no weights that they could be of.
  void require_weights(const std::string& weights) const;
};

/// Saved weights of a network, and the data to run it on; either may also be a word without an option.
struct SavedModelOptions {
  std::string weights;
  DataOptions data;
  PermitOption permit;
  std::string split = "test";
  CLI::Option* split_option = nullptr;
  void add(CLI::App& command);
};

/// The shape of one sample as --input gives it, "3x64x64"; empty text: as published. Throws ArgumentError.
[[nodiscard]] Shape sample_shape(const std::string& text, const models::Model& model);
/// The shape as --input takes it.
[[nodiscard]] std::string sample_text(const Shape& sample);

/// --threads: set_num_threads.
void add_threads(CLI::App& command);

/// --device, for commands on one device.
struct DeviceOption {
  std::string selector;
  void add(CLI::App& command);
  [[nodiscard]] DevicePtr open() const { return Device::open(selector); }
};

/// --trace FILE: a timeline of the work (concord/core/timeline.hpp).
struct TraceOption {
  std::string file;
  void add(CLI::App& command);
  /// Does `work`, which reads `inputs`; with a file, records it, and writes the file at its end, also when it throws.
  /// Rank 1 of several writes run.rank1.json for run.json. Throws before the work: ArgumentError if the file is an
  /// input, IoError if it cannot be written.
  void around(const InputFiles& inputs, const std::function<void()>& work, int rank = 0) const;
};

/// --memory-budget, of a training step.
struct MemoryBudgetOption {
  std::string text;
  void add(CLI::App& command);
  [[nodiscard]] std::size_t bytes() const;  // 0: none
};

/// --precision of matrix multiplications.
struct PrecisionOption {
  std::string name = "fp32";
  void add(CLI::App& command);
  [[nodiscard]] Precision get() const { return precision_of(name); }
  /// Warns the user if `device` has no matrix cores for the precision, and says what matrix multiplications then use.
  void warn_of(const DeviceInfo& device) const;
};

}  // namespace concord::cli
