// Checkpoints: everything a training needs to go on as if it had not been stopped, and weights alone. Both are
// safetensors files, replaced at once. The trainer writes them, the command and the samples read them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>

#include "concord/compile/variables.hpp"
#include "concord/io/safetensors.hpp"

namespace concord::io {

/// Where a training stands. Kept as JSON in the file's metadata under "concord.checkpoint".
struct CheckpointInfo {
  std::string network;
  std::int64_t epoch = 0;               // epochs done
  std::int64_t step = 0;                // steps done
  std::int64_t position = 0;            // samples of the current epoch already used
  std::uint32_t permutation_epoch = 0;  // the epoch given to data::permutation for the current order
  std::uint64_t seed = 0;
  std::map<std::string, std::string> schedule;  // state of the rate schedule, by name
  std::map<std::string, std::string> extra;     // anything else
  std::string library_version;                  // of the library that wrote it; filled in by save_checkpoint
};

struct Checkpoint {
  CheckpointInfo info;
  TensorMap tensors;
};

using Metadata = std::map<std::string, std::string>;

struct SaveOptions {
  /// Values that are not finite are refused, unless this says otherwise; they are then warned of.
  bool allow_non_finite = false;
};

/// Throws NonFinite naming the first tensor of f32 with a value that is not finite, or warns of it if that is allowed.
void check_finite(const std::filesystem::path& path, const TensorMap& tensors, const SaveOptions& options);

/// Writes all variables: weights, optimizer state, running statistics, counters, the random state; `more` goes into the
/// metadata beside the info. Throws IoError, and as check_finite; the file that was there is then untouched.
void save_checkpoint(const std::filesystem::path& path, const TensorMap& tensors, const CheckpointInfo& info,
                     const Metadata& more = {}, const SaveOptions& options = {});
void save_checkpoint(const std::filesystem::path& path, const Variables& variables, const CheckpointInfo& info);

/// Throws IoError, FormatError for a damaged file or one that is no checkpoint.
[[nodiscard]] Checkpoint load_checkpoint(const std::filesystem::path& path);

/// Throws FormatError unless `tensors` has exactly the names and specs `expected`; the message begins with `what`
/// ("run1.safetensors: checkpoint of another network") and lists the first missing, unexpected and mis-shaped ones.
void check_tensors(const TensorMap& tensors, const std::map<std::string, TensorSpec>& expected,
                   const std::string& what);

/// Parameters and buffers under their names as in PyTorch's state_dict, for other programs to read. Throws as
/// save_checkpoint.
void save_weights(const std::filesystem::path& path, const TensorMap& weights, const Metadata& more = {},
                  const SaveOptions& options = {});
/// Those of `variables` that are named.
void save_weights(const std::filesystem::path& path, const Variables& variables, std::span<const std::string> names);

/// The tensors `expected`, from a weights file or a checkpoint, of which the rest is left out. In a weights file
/// other tensors are an error, but PyTorch's "num_batches_tracked" counters are skipped, and auxiliary classifiers
/// where the network is built without them. Throws FormatError as check_tensors.
[[nodiscard]] TensorMap load_weights(const std::filesystem::path& path,
                                     const std::map<std::string, TensorSpec>& expected);

}  // namespace concord::io
