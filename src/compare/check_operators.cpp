// Replays of the step's programs, and what their results are held against.
#include "concord/compare/check_operators.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "concord/compare/beside.hpp"
#include "concord/compare/extent.hpp"
#include "concord/compare/float64/evaluate.hpp"
#include "concord/compare/tolerance.hpp"

namespace concord {
namespace {

constexpr std::size_t kNodesAhead = 4;  // replayed and not checked yet: their values take memory

/// What the host gives for a node in double precision; false for a node without a reference, which has
/// the first device's results in its place.
bool add_exact(const ReplayedNode& node, ReferenceValues& reference, DeviceRun& run) {
  float64::Results exact = float64::evaluate(node);
  if (!exact) {
    if (std::ranges::find(run.unreferenced, node.entry.op) == run.unreferenced.end()) {
      run.unreferenced.push_back(node.entry.op);
    }
    return false;
  }
  for (std::size_t k = 0; k < node.results.size(); ++k) {
    if (node.results[k].dtype() == DType::f32) reference.at(node.outputs[k]).exact = std::move((*exact)[k]);
  }
  return true;
}

double error_of(const Tensor& result, const ReferenceValue& expected) {
  return expected.exact ? largest_difference(result, *expected.exact) : largest_difference(result, expected.value);
}

/// How far result k is from the reference.
Deviation deviation_of(const ReplayedNode& node, std::size_t k, const ReferenceValue& expected, bool fused,
                       std::int64_t steps_done, Precision precision) {
  const TraceEntry& entry = node.entry;
  Deviation deviation{.node = entry.node,
                      .op = entry.op,
                      .kernel = entry.kernel,
                      .value = node.outputs[k],
                      .shapes = entry.shapes,
                      .gradient = entry.node.starts_with("grad/"),
                      .error = error_of(node.results[k], expected),
                      .step = steps_done,
                      .fused = fused};
  if (deviation.error == 0) return deviation;
  deviation.tolerance = tolerance_of(node, k, precision);
  if (std::isinf(deviation.tolerance)) deviation.error = 0;  // such results are not compared
  if (expected.value.dtype() == DType::f32) deviation.largest = extent_of(expected.value).largest;
  return deviation;
}

/// Keeps of each node the result that is farthest for its tolerance.
void keep_worst(std::vector<Deviation>& operators, const Deviation& deviation) {
  const auto is_same = [&](const Deviation& d) {
    return d.fused == deviation.fused && d.node == deviation.node && d.op == deviation.op;
  };
  const auto found = std::ranges::find_if(operators, is_same);
  if (found == operators.end()) {
    operators.push_back(deviation);
  } else if (deviation.share() > found->share()) {
    *found = deviation;
  }
}

/// The reference as a file keeps it.
Tensor rounded(const ReferenceValue& reference) {
  if (!reference.exact) return reference.value;
  Tensor tensor(reference.value.spec());
  std::ranges::transform(*reference.exact, tensor.values<float>().begin(),
                         [](double value) { return static_cast<float>(value); });
  return tensor;
}

OperatorCase case_of(const ReplayedNode& node, const ReferenceValues& reference, bool fused, const DeviceInfo& device,
                     Precision precision) {
  OperatorCase kept{.node = node.entry.node,
                    .op = node.entry.op,
                    .attributes = node.op->attributes(),
                    .fused = fused,
                    .device = device.id,
                    .kernel = node.entry.kernel,
                    .outputs = node.outputs,
                    .results = node.results};
  for (std::size_t i = 0; i < node.inputs.size(); ++i) kept.inputs.emplace(node.input_names[i], node.inputs[i]);
  for (std::size_t k = 0; k < node.results.size(); ++k) {
    kept.expected.push_back(rounded(reference.at(node.outputs[k])));
    kept.tolerances.push_back(tolerance_of(node, k, precision));
  }
  return kept;
}

/// A device's own reorders have no name on others: an operator's inputs get the names of what was reordered.
class SourceNames {
 public:
  void note(const ReplayedNode& reorder) { sources_[reorder.outputs[0]] = source_of(reorder.input_names[0]); }
  void rename(ReplayedNode& node) const {
    for (std::string& name : node.input_names) name = source_of(name);
  }

 private:
  [[nodiscard]] std::string source_of(const std::string& name) const {
    const auto found = sources_.find(name);
    return found == sources_.end() ? name : found->second;
  }
  std::map<std::string, std::string> sources_;
};

const Tensor* value_in(const ReferenceValues& reference, const std::string& name) {
  const auto found = reference.find(name);
  return found == reference.end() ? nullptr : &found->second.value;
}

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

}  // namespace

// The first side's own weights serve: a replay leaves them as they are.
void OperatorChecks::compile() {
  if (!programs_.empty()) return;
  const Clock::time_point start = Clock::now();
  for (const Side& side : sides_) {
    const VariablesPtr variables =
        programs_.empty() ? side.variables : std::make_shared<Variables>(side.device, options_.seed);
    programs_.push_back(
        {variables, step_.compiled(variables, {.keep_all = true}), step_.compiled(variables, {.keep_fused = true})});
  }
  cost_.compile_seconds += seconds_since(start);
}

/// Those of the first side, which the others get.
ReferenceValues OperatorChecks::weights_for_all() const {
  ReferenceValues weights;
  for (auto& [name, value] : sides_[0].variables->read_all()) weights.emplace(name, ReferenceValue{value, {}});
  for (const SidePrograms& side : std::span(programs_).subspan(1)) {
    for (const auto& [name, weight] : weights) {
      if (side.variables->contains(name)) side.variables->write(name, weight.value);
    }
  }
  return weights;
}

void OperatorChecks::take_reference(std::int64_t steps_done, Checked& checked, ReferenceValues& reference,
                                    DeviceRun& run) {
  SourceNames names;
  programs_[0].single.replay([&](const std::string& name) { return value_in(reference, name); },
                             [&](const ReplayedNode& replayed) {
                               checked.emplace(replayed.op, replayed.entry.node, replayed.entry.kernel);
                               for (std::size_t k = 0; k < replayed.results.size(); ++k) {
                                 reference.emplace(replayed.outputs[k], ReferenceValue{replayed.results[k], {}});
                               }
                               if (replayed.op == nullptr) return names.note(replayed);
                               if (options_.reference == Reference::device || !add_exact(replayed, reference, run))
                                 return;
                               ReplayedNode node = replayed;
                               names.rename(node);
                               check_node(node, reference, false, steps_done, run);
                             });
}

void OperatorChecks::check_node(const ReplayedNode& node, const ReferenceValues& reference, bool fused,
                                std::int64_t steps_done, DeviceRun& run) const {
  const bool all_known =
      std::ranges::all_of(node.outputs, [&](const std::string& name) { return reference.contains(name); });
  if (!all_known) return;
  bool diverges_first = false;
  for (std::size_t k = 0; k < node.results.size(); ++k) {
    ++run.checked_values;
    const Deviation deviation =
        deviation_of(node, k, reference.at(node.outputs[k]), fused, steps_done, options_.precision);
    keep_worst(run.operators, deviation);
    if (!deviation.diverges() || run.first_deviation) continue;
    run.first_deviation = deviation;
    diverges_first = true;
  }
  const bool is_case = options_.case_node.empty() ? diverges_first : node.entry.node == options_.case_node;
  if (is_case && !run.kept_case) run.kept_case = case_of(node, reference, fused, run.device, options_.precision);
}

void OperatorChecks::check_program(Program& program, const ReferenceValues& reference, bool fused,
                                   std::int64_t steps_done, Checked& checked, DeviceRun& run) const {
  SourceNames names;
  Beside checks(kNodesAhead);  // the device goes on meanwhile
  const auto given = [&](const std::string& name) { return value_in(reference, name); };
  const auto check = [&](const ReplayedNode& replayed) {
    if (replayed.op == nullptr) return names.note(replayed);
    ReplayedNode node = replayed;
    names.rename(node);
    checks.add([this, node = std::move(node), &reference, fused, steps_done, &run] {
      check_node(node, reference, fused, steps_done, run);
    });
  };
  program.replay(given, check, [&](const TraceEntry& entry, const Operator* op) {
    return checked.emplace(op, entry.node, entry.kernel).second;
  });
  checks.finish();
}

void OperatorChecks::run_all(const Batch& batch, std::int64_t steps_done, std::span<DeviceRun> runs) {
  compile();
  const Clock::time_point start = Clock::now();
  run(batch, true, steps_done, runs);
  cost_.all_seconds.push_back(seconds_since(start));
}

void OperatorChecks::run_fused(const Batch& batch, std::int64_t steps_done, std::span<DeviceRun> runs) {
  compile();
  const Clock::time_point start = Clock::now();
  run(batch, false, steps_done, runs);
  cost_.fused_seconds.push_back(seconds_since(start));
}

void OperatorChecks::run(const Batch& batch, bool alone, std::int64_t steps_done, std::span<DeviceRun> runs) {
  ReferenceValues reference = weights_for_all();
  for (std::size_t i = 0; i < sides_.size(); ++i) {
    SidePrograms& side = programs_[i];
    if (i == 0 || alone) feed(side.single, batch);
    feed(side.fused, batch);
    Checked checked;
    if (i == 0) {
      take_reference(steps_done, checked, reference, runs[0]);
    } else if (alone) {
      check_program(side.single, reference, false, steps_done, checked, runs[i]);
    }
    check_program(side.fused, reference, true, steps_done, checked, runs[i]);
  }
}

}  // namespace concord
