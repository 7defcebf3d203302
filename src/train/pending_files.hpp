// PendingFiles: what was read from files before the variables that it belongs to were known. Internal to the room.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "concord/compile/variables.hpp"
#include "concord/io/checkpoint.hpp"

namespace concord::train {

using Specs = std::map<std::string, TensorSpec>;
using Shards = std::map<std::string, Shard>;

/// At most one checkpoint, and one file of weights, which count after those of the checkpoint. The file of weights
/// stays known: layers that only the training calls, such as auxiliary classifiers, may take theirs after all others.
class PendingFiles {
 public:
  /// Replaces the weights that wait. The header of the file is checked now.
  void set_weights(const std::filesystem::path& path, const io::LoadOptions& options);
  /// Replaces everything that waits. Throws FormatError, and changes nothing, unless what the checkpoint has of `known`
  /// fits.
  void set_checkpoint(io::Checkpoint checkpoint, const std::filesystem::path& path, const Specs& known);

  [[nodiscard]] bool has_checkpoint() const { return checkpoint_.has_value(); }
  /// Whether the checkpoint that waits, if there is one, has this tensor.
  [[nodiscard]] bool contains(const std::string& name) const {
    return checkpoint_ && checkpoint_->tensors.contains(name);
  }
  /// A number of the checkpoint; nothing without one.
  [[nodiscard]] std::optional<std::int32_t> counter(const std::string& name) const;
  /// Throws FormatError unless the checkpoint, where there is one, has each of these tensors, and no others if `all`.
  void check_checkpoint(const Specs& expected, bool all);
  /// What the file of weights has for this network (weights::load), or, where it was read for `before`, of what that
  /// lacks. Nothing without a file.
  [[nodiscard]] io::TensorMap read_weights(const Specs& network, const Specs& before) const;

  /// Moves these tensors, which were checked, from the checkpoint to the device; of those in `shards`, the part.
  void move_to(Variables& variables, const Specs& names, const Shards& shards);
  void drop_checkpoint() { checkpoint_.reset(); }

 private:
  struct WeightsFile {
    std::filesystem::path path;
    io::LoadOptions options;
  };
  std::optional<WeightsFile> weights_;
  std::optional<io::Checkpoint> checkpoint_;  // without what has been taken over
  std::filesystem::path checkpoint_path_;
};

}  // namespace concord::train
