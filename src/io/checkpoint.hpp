// Checkpoints contain everything that a training needs to continue; weights files contain weights alone. Both are
// safetensors files, replaced atomically. The trainer writes them; the command and the samples read them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "concord/compile/variables.hpp"
#include "concord/core/export.hpp"
#include "concord/io/safetensors.hpp"

namespace CONCORD_PUBLIC concord {
namespace io {

/// The state of a training. The file stores it as JSON in the metadata entry "concord.checkpoint".
struct CheckpointInfo {
  std::string network;
  std::int64_t epoch = 0;               // epochs done
  std::int64_t step = 0;                // steps done
  std::int64_t position = 0;            // samples of the current epoch that are done
  std::uint32_t permutation_epoch = 0;  // the epoch that data::permutation got for the current order
  std::uint64_t seed = 0;
  std::map<std::string, std::string> schedule;  // state of the learning-rate schedule, by name
  std::map<std::string, std::string> extra;     // other entries
  std::string library_version;                  // version of the library that wrote the file; set by save_checkpoint
};

struct Checkpoint {
  CheckpointInfo info;
  TensorMap tensors;
};

using Metadata = std::map<std::string, std::string>;

struct SaveOptions {
  /// Saves NaN and infinite values with a warning. Without it, they are an error.
  bool allow_non_finite = false;
  /// Further metadata of this file, UTF-8; of two with a name it is the one that is written.
  Metadata metadata = {};
};

/// Throws NonFinite with the name of the first f32 tensor that has a NaN or infinite value. If `options` allow such
/// values, logs a warning instead.
void check_finite(const std::filesystem::path& path, const TensorMap& tensors, const SaveOptions& options);

/// Writes all variables except transient ones: weights, optimizer state, running statistics, counters and the random
/// state. `more` is added to the metadata. Throws IoError, and the errors of check_finite; an existing file then stays
/// unchanged.
void save_checkpoint(const std::filesystem::path& path, const TensorMap& tensors, const CheckpointInfo& info,
                     const Metadata& more = {}, const SaveOptions& options = {});
void save_checkpoint(const std::filesystem::path& path, const Variables& variables, const CheckpointInfo& info);

/// Reads a checkpoint. Throws IoError, and FormatError if the file is damaged or is not a checkpoint.
[[nodiscard]] Checkpoint load_checkpoint(const std::filesystem::path& path);
/// Reads the info of a checkpoint without its tensors.
[[nodiscard]] CheckpointInfo load_checkpoint_info(const std::filesystem::path& path);

/// Throws FormatError unless `tensors` has exactly the names and specs of `expected`. The message begins with `what`
/// ("run1.safetensors: checkpoint of another network") and lists the first missing, unexpected and misshaped tensors.
void check_tensors(const TensorMap& tensors, const std::map<std::string, TensorSpec>& expected,
                   const std::string& what);

/// Writes parameters and running statistics under the names of PyTorch's state_dict, so that other programs can read
/// them. Throws as save_checkpoint.
void save_weights(const std::filesystem::path& path, const TensorMap& weights, const Metadata& more = {},
                  const SaveOptions& options = {});
/// Writes the variables with these names.
void save_weights(const std::filesystem::path& path, const Variables& variables, std::span<const std::string> names);

struct LoadOptions {
  /// false: tensors that are missing or have another shape keep their values, and a report lists them. For example, to
  /// give a trained network a new head.
  bool strict = true;
  /// Patterns of names that may differ although the load is strict; '*' stands for any characters. Tensors of the
  /// network that match `permit_missing` keep their values if the file lacks them or has another shape. Tensors of the
  /// file that match `permit_extra` are left out.
  std::vector<std::string> permit_missing = {};
  std::vector<std::string> permit_extra = {};
};

/// The differences between the tensors of a file and of a network.
struct LoadReport {
  std::vector<std::string> missing;     // not in the file
  std::vector<std::string> unexpected;  // not in the network
  std::vector<std::string> misshaped;   // "fc.weight: expected f32 [2, 2], got f32 [3, 2]"
  [[nodiscard]] bool is_empty() const { return missing.empty() && unexpected.empty() && misshaped.empty(); }
  /// The differences that these options do not permit.
  [[nodiscard]] LoadReport refused_by(const LoadOptions& options) const;
  /// "1 missing (fc.bias), 1 unexpected (head.bias)". Long lists are shortened.
  [[nodiscard]] std::string str() const;
};

/// Reads the tensors `expected` from a weights file, or from a checkpoint, whose other tensors are ignored. F16, BF16
/// and F64 are converted to f32 (SafetensorsFile::read_as). Other tensors in a weights file are an error, with two
/// exceptions: PyTorch's "num_batches_tracked" beside a running mean, and auxiliary classifiers if the network is built
/// without them and the file has everything else. Throws FormatError with all missing, unexpected and misshaped
/// tensors, or with the tensor and the element that is outside the range of fp32.
[[nodiscard]] TensorMap load_weights(const std::filesystem::path& path,
                                     const std::map<std::string, TensorSpec>& expected);

struct LoadedWeights {
  TensorMap tensors;
  LoadReport report;  // empty if the load was strict
};
/// As above. With LoadOptions::strict = false, throws FormatError only if no tensor matches.
[[nodiscard]] LoadedWeights load_weights(const std::filesystem::path& path,
                                         const std::map<std::string, TensorSpec>& expected, const LoadOptions& options);

}  // namespace io
}  // namespace concord
