// Weights: the variables of a training, and what files bring for them. Internal to the room.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "concord/compile/variables.hpp"
#include "concord/train/options.hpp"
#include "concord/train/pending_files.hpp"
#include "concord/train/trace.hpp"

namespace concord::train {

/// Variables become known with the programs that have them. A program gives first what it will add (`expect`), which
/// checks all files that wait, and is compiled with `storage_for`; then its variables take their values (`accept`).
/// Where one of these throws, nothing has changed but the storage of new variables.
class Weights {
 public:
  Weights(const DevicePtr& device, const TrainerOptions& options);

  [[nodiscard]] const VariablesPtr& variables() const { return variables_; }
  /// Whether a program has named the network's weights.
  [[nodiscard]] bool are_known() const { return !network_.empty(); }
  /// Whether evaluations and files take averages of the weights: from the first update on that was not left out.
  [[nodiscard]] bool are_averaged() const;

  /// What a program brings.
  struct Arrival {
    bool is_training = false;  // it has all that a checkpoint holds
    Specs fresh;               // what a checkpoint holds of variables that no program had before
    Specs network;             // the network's parameters and running statistics
    io::TensorMap loaded;      // of these
    Shards shards = {};        // of what this rank has a part of
    /// Averages that the checkpoint lacks, and what they begin as: it is of a time without averages of running
    /// statistics. Programs that read averages before are to be made anew.
    std::map<std::string, std::string> begun = {};
  };
  /// Throws FormatError where a file that waits does not fit.
  [[nodiscard]] Arrival expect(const Traced& traced, const ProgramKey& key);
  /// The part of a variable that this rank has.
  [[nodiscard]] Shard shard_of(const std::string& name) const;
  /// The same storage; if `averaged`, averages stand under the names of the weights that they are of. `needed`: the
  /// variables that the program has, of those of the graph.
  [[nodiscard]] VariablesPtr storage_for(const Graph& graph, bool averaged, std::span<const VariablePtr> needed);
  void accept(const Traced& traced, Arrival arrival);

  /// Weights of a file, now or as soon as the network is known.
  void load(const std::filesystem::path& path, const io::LoadOptions& options);
  /// What is known takes its values from the checkpoint now, the rest as it becomes known.
  void resume(io::Checkpoint checkpoint, const std::filesystem::path& path);

  /// What a checkpoint holds: everything but the data and the counters of evaluations.
  [[nodiscard]] io::TensorMap persistent() const;
  /// Weights and running statistics, with averages where evaluations use them, under the weights' names.
  [[nodiscard]] io::TensorMap evaluated() const;
  /// The specs of those, and of what a checkpoint holds, on all devices together.
  [[nodiscard]] const Specs& network() const { return network_; }
  [[nodiscard]] const Specs& known() const { return known_; }
  /// Weights, averages and running statistics.
  [[nodiscard]] io::TensorMap all() const;

 private:
  /// Puts weights where they belong, and in place of their averages.
  void write(const io::TensorMap& tensors);
  /// Whether evaluations read an average in place of this variable of a graph that does not train.
  [[nodiscard]] bool has_average(const Graph& graph, const Variable& variable) const;
  /// Averages that are new in the middle of a training, of parameters that were frozen before, begin as these are now.
  void start_averages(const Specs& fresh);

  /// Whether this device has the variable. One of a pipeline has those of its stage, and of the others only the specs.
  [[nodiscard]] bool has(const std::string& name) const { return !is_stage_ || variables_->contains(name); }

  const bool is_stage_;
  const double ema_decay_;
  const std::vector<optim::Group> groups_;
  const VariablesPtr variables_;
  Specs network_;  // weights and running statistics
  Specs known_;    // everything that a checkpoint holds
  Shards shards_;  // of what this rank has a part of; the specs above are those of the whole
  PendingFiles pending_;
};

}  // namespace concord::train
