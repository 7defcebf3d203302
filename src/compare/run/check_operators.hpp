// OperatorChecks: runs every operator of a training step on each device, with the inputs it has on the first one.
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

/// A value of the first device's step, and the values that other results are compared with.
struct ReferenceValue {
  Tensor value;                              // the input of the operators that read it
  std::optional<Tensor> expected;            // from the unfused operator, or `exact` as f32; none if it has none
  std::optional<std::vector<double>> exact;  // from the host in double precision, with Reference::float64
};
using ReferenceValues = std::map<std::string, ReferenceValue>;

/// The results of a step: its loss, and the variables after it.
struct StepMade {
  float loss;
  std::map<std::string, Tensor> variables;
};

/// Adds the results of checks to `runs`, one for each replica, and their time to `cost`. The constructor's arguments
/// must outlive the object.
///
/// The first replica runs the fused kernels of its step one by one; their results are the inputs of every checked
/// operator. Then it runs the operators that fusion changed, unfused, if results are compared with those. The other
/// replicas run and are compared concurrently, each in threads of its own.
class OperatorChecks {
 public:
  OperatorChecks(const TrainingStep& step, std::span<const Replica> sides, const CompareOptions& options,
                 CheckCost& cost)
      : step_(step), sides_(sides), options_(options), cost_(cost) {}

  /// Checks each operator, unfused and as fused, with the weights of the first replica. The fused kernels of the first
  /// replica are checked too.
  void run_all(const Batch& batch, std::int64_t steps_done, std::span<DeviceRun> runs);
  /// Runs a step of the first replica, bit-identical to Replica::run, and checks the kernels that the other replicas
  /// use in a step. If all replicas fuse alike, the first replica's kernels are the reference. Otherwise, and with
  /// Reference::float64, its unfused operators are, and its fused kernels are checked too. Returns the loss of the
  /// first replica.
  /// `others` starts the steps of the other replicas. It is called after the weights of the first replica are read, and
  /// after their copies are enqueued on the devices that use the host's cores.
  float step_first(const Batch& batch, std::int64_t steps_done, std::span<DeviceRun> runs,
                   const std::function<void()>& others);
  /// Checks each operator of another replica (`side` > 0), unfused and as fused, on the values of its own step: its
  /// fused kernels run one by one from its own weights. Returns the results of that step. The unfused operators of the
  /// first replica are the reference. They use these weights, so the first replica loses its own.
  StepMade check_own(std::size_t side, const Batch& batch, std::int64_t steps_done, std::span<DeviceRun> runs);
  /// Finds the first value that is not finite in the replica's own step, with the kernels that it uses.
  [[nodiscard]] NonFiniteReport find_non_finite(std::size_t side, const Batch& batch);
  /// Frees the memory of the programs. The next run compiles them again.
  void release() { programs_.clear(); }

 private:
  /// What a check runs: the operators as fused, or both as fused and unfused.
  enum class Forms : std::uint8_t { fused, both };
  /// The programs of one replica. They use the weights of the first replica.
  struct SidePrograms {
    VariablesPtr variables;
    Program single, fused;
  };
  struct Check;
  struct CheckedNode;

  void compile();
  /// Calls `first_done` after the first replica has run. The other replicas are checked meanwhile, unless replicas
  /// share a device.
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
  bool fuse_alike_ = false;  // every value of any replica's fused step exists in the first one's too
};

}  // namespace concord
