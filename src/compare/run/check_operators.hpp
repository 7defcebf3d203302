// OperatorChecks: every operator of a training step, run on each device with the inputs it has on the first one.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "concord/compare/compare.hpp"
#include "concord/compare/run/ordered_workers.hpp"
#include "concord/compare/run/training_step.hpp"

namespace concord {

/// A value of the first device's step, and what results that should be it are held against.
struct ReferenceValue {
  Tensor value;                              // what operators behind it are given
  std::optional<Tensor> expected;            // of the operator by itself; none where that has no such value
  std::optional<std::vector<double>> exact;  // of the host in double precision, with Reference::float64
};
using ReferenceValues = std::map<std::string, ReferenceValue>;

/// What a step made: its loss, and the variables as it left them.
struct StepMade {
  float loss;
  std::map<std::string, Tensor> variables;
};

/// Adds what it finds to the runs, one for each side, and what it cost. All it is given must outlive it.
///
/// The first side runs the kernels of its step, as fusion makes them, one after the other: what they make are the
/// values that every operator is given. Then it runs the operators by themselves that fusion changed, where results are
/// held against those. The other sides run and are compared side by side, each in threads of its own.
class OperatorChecks {
 public:
  OperatorChecks(const TrainingStep& step, std::span<const Replica> sides, const CompareOptions& options,
                 CheckCost& cost)
      : step_(step), sides_(sides), options_(options), cost_(cost) {}

  /// Each operator by itself, and what fusion makes of them, from the weights of the first side. The first side's own
  /// fused kernels are checked like the others.
  void run_all(const Batch& batch, std::int64_t steps_done, std::span<DeviceRun> runs);
  /// The first side's step, to the bit what Replica::run makes, and with it the check of the kernels that a step of
  /// each other side runs. They are held against the first side's kernels where all sides fuse alike, else, and with
  /// float64, against its operators by themselves, and its own kernels too. Gives the first side's loss.
  /// `others` lets the other sides take steps of their own, once the first side's weights are read, and queued on the
  /// devices on the host's cores.
  float step_first(const Batch& batch, std::int64_t steps_done, std::span<DeviceRun> runs,
                   const std::function<void()>& others);
  /// Each operator of a side behind the first, by itself and as fusion makes it, on the values that its own kernels
  /// make of its own weights, one after the other: it gives what they made. The first side's operators by themselves
  /// are the reference; they take these weights, and the first side loses its own.
  StepMade check_own(std::size_t side, const Batch& batch, std::int64_t steps_done, std::span<DeviceRun> runs);
  /// The first value that is not finite in the side's own step, with the kernels that it runs.
  [[nodiscard]] NonFiniteReport find_non_finite(std::size_t side, const Batch& batch);
  /// Gives back the memory of the programs; the next run compiles them again.
  void release() { programs_.clear(); }

 private:
  /// What a check runs: what fusion makes of the operators, or each by itself as well.
  enum class Forms : std::uint8_t { fused, both };
  /// What one side runs, with the weights of the first.
  struct SidePrograms {
    VariablesPtr variables;
    Program single, fused;
  };
  struct Check;
  struct CheckedNode;

  void compile();
  /// `first_done` is called beside the other sides' checks, when the first side has run.
  void run(Check& check, std::span<DeviceRun> runs, const std::function<void()>& first_done);
  [[nodiscard]] ReferenceValues beginning(std::size_t side, const Batch& batch) const;
  void take_weights(std::size_t side, Check& check) const;
  [[nodiscard]] std::vector<ReplayedNode> run_first(Forms forms, Check& check, DeviceRun& run);
  void check_side(std::size_t i, std::vector<ReplayedNode> of_first, Check& check, std::span<DeviceRun> runs);
  void add_expected(const ReplayedNode& node, Check& check, DeviceRun& run) const;
  void check_node(ReplayedNode node, Form form, Check& check, DeviceRun& run,
                  const std::function<void(OrderedWorkers::Job)>& take) const;
  [[nodiscard]] OrderedWorkers::Note check_result(const std::shared_ptr<const CheckedNode>& checked, std::size_t k,
                                                  Check& check, DeviceRun& run) const;

  const TrainingStep& step_;
  std::span<const Replica> sides_;
  const CompareOptions& options_;
  CheckCost& cost_;
  std::vector<SidePrograms> programs_;
  bool fuse_alike_ = false;  // no side's step has a value that the first one's has not
};

}  // namespace concord
