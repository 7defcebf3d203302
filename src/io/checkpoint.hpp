// Checkpoints: everything a training needs to go on as if it had not been stopped, and weights alone. Both are
// safetensors files, replaced at once. The trainer writes them, the command and the samples read them.
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

/// Writes all variables but transient ones: weights, optimizer state, running statistics, counters, the random state;
/// `more` goes into the metadata beside the info. Throws IoError, and as check_finite; the file that was there is then
/// untouched.
void save_checkpoint(const std::filesystem::path& path, const TensorMap& tensors, const CheckpointInfo& info,
                     const Metadata& more = {}, const SaveOptions& options = {});
void save_checkpoint(const std::filesystem::path& path, const Variables& variables, const CheckpointInfo& info);

/// Throws IoError, FormatError for a damaged file or one that is no checkpoint.
[[nodiscard]] Checkpoint load_checkpoint(const std::filesystem::path& path);
/// Its info alone.
[[nodiscard]] CheckpointInfo load_checkpoint_info(const std::filesystem::path& path);

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

struct LoadOptions {
  /// false: what does not fit is left as it is, and told of: to give a trained network a new head.
  bool strict = true;
};

/// What a file and a network do not have in common.
struct LoadReport {
  std::vector<std::string> missing;     // in the file
  std::vector<std::string> unexpected;  // by the network
  std::vector<std::string> misshaped;   // "fc.weight: expected f32 [2, 2], got f32 [3, 2]"
  [[nodiscard]] bool is_empty() const { return missing.empty() && unexpected.empty() && misshaped.empty(); }
  /// "1 missing (fc.bias), 1 unexpected (head.bias)"; long lists are cut.
  [[nodiscard]] std::string str() const;
};

/// The tensors `expected`, from a weights file or a checkpoint, of which the rest is left out. Numbers of F16, BF16 and
/// F64 become f32 (SafetensorsFile::read_as). In a weights file other tensors are an error, but PyTorch's
/// "num_batches_tracked" beside a running mean is skipped, and auxiliary classifiers where the network is built without
/// them and the file has all else. Throws FormatError that lists what is missing, unexpected and of another shape, all
/// at once, and one that names tensor and element for a number beyond fp32.
[[nodiscard]] TensorMap load_weights(const std::filesystem::path& path,
                                     const std::map<std::string, TensorSpec>& expected);

struct LoadedWeights {
  TensorMap tensors;
  LoadReport report;  // empty unless the load was not strict
};
/// With LoadOptions::strict = false throws FormatError only when no tensor fits.
[[nodiscard]] LoadedWeights load_weights(const std::filesystem::path& path,
                                         const std::map<std::string, TensorSpec>& expected, const LoadOptions& options);

}  // namespace io
}  // namespace concord
