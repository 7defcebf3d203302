// A network in stages, as one rank sees it: its programs, and what it sends to the stages before and behind it.
// Internal to the room.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "concord/collective/group.hpp"
#include "concord/compile/section.hpp"
#include "concord/train/shared_parameters.hpp"
#include "concord/train/stage_plan.hpp"
#include "concord/train/trace.hpp"

namespace concord::train {

/// A rank of a pipeline: rank i computes stage i. What all programs of a trainer have in common.
class PipelineRank {
 public:
  /// `memory`: bytes of this rank's device.
  PipelineRank(collective::GroupPtr group, std::size_t memory) : group_(std::move(group)), memory_(memory) {}

  [[nodiscard]] int stage() const { return group_->rank(); }
  [[nodiscard]] int stages() const { return group_->size(); }
  [[nodiscard]] int last() const { return stages() - 1; }
  [[nodiscard]] bool is_first() const { return stage() == 0; }
  [[nodiscard]] bool is_last() const { return stage() == last(); }
  [[nodiscard]] collective::Group& group() const { return *group_; }

  /// The plan, chosen by this graph of the network if there is none yet. All ranks call it together.
  [[nodiscard]] const StagePlan& plan_for(const std::function<Traced()>& traced);
  /// Notes where the variables of a graph have their homes.
  void note_homes(Graph& graph, const Stages& stages);
  /// Notes which stages share gradients, in a step that trains. Throws NotSupported if a step gathers some that those
  /// which end updates do not send.
  void note_sharers(const Traced& traced, bool ends_updates);
  /// The rank that files get this variable from.
  [[nodiscard]] int home(const std::string& variable) const;
  /// Notes the averages of parameters that several stages read. Their readers get them when averages are evaluated.
  void note_averages(SharedValues averages) { averages_.emplace(std::move(averages)); }
  void averages_have_changed() { are_averages_new_ = true; }
  /// Sends the averages, unless they are where they are read. Called before programs are made or averages evaluated.
  /// All ranks call it together. Throws RankLost.
  void share_averages();
  /// The bytes of rank `root` for all.
  void share(std::span<std::byte> bytes, int root) const { group_->broadcast(bytes, root); }

 private:
  collective::GroupPtr group_;
  std::size_t memory_;
  std::optional<StagePlan> plan_;
  std::map<std::string, int> homes_;
  std::optional<SharedValues> averages_;
  bool are_averages_new_ = false;
  std::map<std::string, std::set<int>> sharers_;  // of parameters whose gradients are made by several stages
};

/// One stage of a step. A step of a training has three parts (optim::StagedStep).
class StageProgram {
 public:
  /// What this stage runs of a traced graph: of the step itself, …
  struct Parts {
    Section run;
    Section measure, update;  // … and of what ends an update
    std::vector<Value> from_before, from_behind, to_behind, to_before;
  };
  [[nodiscard]] static Parts parts_of(const Traced& traced, const Stages& stages, const PipelineRank& rank,
                                      Purpose purpose);

  /// Compiles the parts. `slots`: batches that are between their forward and their backward pass at a time.
  StageProgram(const PipelineRank& rank, const Traced& traced, const Stages& stages, Parts parts,
               const VariablesPtr& variables, const CompileOptions& options, std::size_t slots);

  /// Puts a batch into the inputs of a program.
  using Feed = std::function<void(Program&)>;

  /// Runs a step that does not train: the values of the stage before, the program, what the next one needs.
  void run(const Feed& feed);
  /// A value of the last stage, on all ranks.
  [[nodiscard]] Tensor read(const Value& value);

  // A step that trains, of the batch in a slot:
  [[nodiscard]] std::size_t slots() const { return slots_.size(); }
  void receive_forward(std::size_t slot) { receive(slots_[slot], from_before_, rank_.stage() - 1); }
  void run_forward(std::size_t slot, const Feed& feed);
  void send_forward(std::size_t slot) { send(slots_[slot], to_behind_, rank_.stage() + 1); }
  void receive_backward(std::size_t slot) { receive(slots_[slot], from_behind_, rank_.stage() + 1); }
  void run_backward(std::size_t slot);
  void send_backward(std::size_t slot) { send(slots_[slot], to_before_, rank_.stage() - 1); }
  /// After all batches of an update: the gradients of shared parameters, what the stages measure together, and the
  /// update. Throws RankLost.
  void end_update();
  /// What was not finite first since `forget_failure`, "the loss"; empty: nothing.
  [[nodiscard]] const std::string& failure() const { return failure_; }
  void forget_failure() { failure_.clear(); }

 private:
  /// The ways of values to or from another stage, through pinned memory.
  struct Wire {
    std::string name;
    TensorSpec spec;
    StagingPtr staging;
    BufferPtr landing;  // of what is received: the transfer does not wait for who reads the input
    EventPtr moved, taken;
  };
  [[nodiscard]] std::vector<Wire> wires(const std::vector<Value>& values, bool lands) const;
  void send(Program& program, std::vector<Wire>& values, int to) const;
  void receive(Program& program, std::vector<Wire>& values, int from) const;
  void share_numbers();
  void share_measures();

  const PipelineRank& rank_;
  VariablesPtr variables_;
  Parts parts_;
  std::vector<Program> slots_;
  std::vector<Wire> from_before_, from_behind_, to_behind_, to_before_;
  std::optional<Program> measure_, update_;
  std::vector<Assignment> measures_;  // of all stages
  std::optional<SharedGradients> shared_gradients_;
  std::optional<SharedValues> shared_values_;
  std::string failure_;
};

}  // namespace concord::train
