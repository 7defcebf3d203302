// OperatorChecks: every operator of a training step, run on each device with the inputs it has on the first one.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "concord/compare/compare.hpp"
#include "concord/compare/training_step.hpp"

namespace concord {

/// What the results of operators are held against, by value name.
struct ReferenceValue {
  Tensor value;                              // of the first device: what operators behind it are given
  std::optional<std::vector<double>> exact;  // of the host in double precision, with Reference::float64
};
using ReferenceValues = std::map<std::string, ReferenceValue>;

/// Adds what it finds to the runs, one for each side. The step, sides and options must outlive it.
class OperatorChecks {
 public:
  OperatorChecks(const TrainingStep& step, std::span<const Side> sides, const CompareOptions& options)
      : step_(step), sides_(sides), options_(options) {}

  /// Each operator by itself, and what fusion makes of them, from the weights of the first side. The first side's own
  /// fused kernels are checked like the others.
  void run_all(const Batch& batch, std::int64_t steps_done, std::span<DeviceRun> runs);
  /// Only the kernels that a step really runs, as fusion makes them.
  void run_fused(const Batch& batch, std::int64_t steps_done, std::span<DeviceRun> runs);
  /// Gives back the memory of the programs; the next run compiles them again.
  void release() { programs_.clear(); }
  [[nodiscard]] const CheckCost& cost() const { return cost_; }

 private:
  /// What one side runs, with the weights of the first.
  struct SidePrograms {
    VariablesPtr variables;
    Program single, fused;
  };
  /// Operators of one device that were checked: what fusion leaves as it was has not to be run again.
  using Checked = std::set<std::tuple<const Operator*, std::string, std::string>>;  // and the node and the kernel

  void compile();
  void run(const Batch& batch, bool alone, std::int64_t steps_done, std::span<DeviceRun> runs);
  [[nodiscard]] ReferenceValues weights_for_all() const;
  void take_reference(std::int64_t steps_done, Checked& checked, ReferenceValues& reference, DeviceRun& run);
  void check_program(Program& program, const ReferenceValues& reference, bool fused, std::int64_t steps_done,
                     Checked& checked, DeviceRun& run) const;
  void check_node(const ReplayedNode& node, const ReferenceValues& reference, bool fused, std::int64_t steps_done,
                  DeviceRun& run) const;

  const TrainingStep& step_;
  std::span<const Side> sides_;
  const CompareOptions& options_;
  std::vector<SidePrograms> programs_;
  CheckCost cost_;
};

}  // namespace concord
