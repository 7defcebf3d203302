// Replays of the step's programs, and what their results are held against.
#include "concord/compare/check_operators.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <future>
#include <set>
#include <thread>
#include <tuple>
#include <utility>

#include "concord/compare/extent.hpp"
#include "concord/compare/float64/evaluate.hpp"
#include "concord/compare/tolerance.hpp"
#include "concord/optim/minimize.hpp"

namespace concord {
namespace {

constexpr std::size_t kResultsAhead = 8;  // of nodes replayed and not checked yet: they take memory

/// For each device; it and others go on meanwhile, perhaps on the same cores.
std::size_t checking_threads() { return std::clamp(std::thread::hardware_concurrency() / 4, 1U, 3U); }

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
    if (!(*exact)[k].empty()) reference.at(node.outputs[k]).exact = std::move((*exact)[k]);
  }
  return true;
}

double error_of(const Tensor& result, const ReferenceValue& reference) {
  return reference.exact ? largest_difference(result, *reference.exact)
                         : largest_difference(result, *reference.expected);
}

/// What the first device made of the node; empty where it has no such results.
std::vector<Tensor> expected_of(const ReplayedNode& node, const ReferenceValues& reference) {
  std::vector<Tensor> expected;
  for (const std::string& name : node.outputs) {
    const auto found = reference.find(name);
    if (found == reference.end() || !found->second.expected) return {};
    expected.push_back(*found->second.expected);
  }
  return expected;
}

/// By the names that optim::minimize and gradient() give.
Pass pass_of(std::string_view node) {
  if (node.starts_with("grad/")) return Pass::gradient;
  return optim::is_update(node) ? Pass::update : Pass::forward;
}

/// How far result k is from the reference; `expected` is the first device's.
Deviation deviation_of(const ReplayedNode& node, std::size_t k, std::span<const Tensor> expected,
                       const ReferenceValue& reference, bool fused, std::int64_t steps_done, Precision precision,
                       Extents& extents) {
  const TraceEntry& entry = node.entry;
  Deviation deviation{.node = entry.node,
                      .op = entry.op,
                      .kernel = entry.kernel,
                      .value = node.outputs[k],
                      .shapes = entry.shapes,
                      .pass = pass_of(entry.node),
                      .error = error_of(node.results[k], reference),
                      .step = steps_done,
                      .fused = fused};
  if (deviation.error == 0) return deviation;
  deviation.tolerance = tolerance_of(node, expected, k, precision, extents);
  deviation.error = comparable_error(deviation.error, deviation.tolerance);
  if (expected[k].dtype() == DType::f32) deviation.largest = extents.of(expected[k]).largest;
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
  if (!reference.exact || reference.expected->dtype() != DType::f32) return *reference.expected;
  Tensor tensor(reference.expected->spec());
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
  const std::vector<Tensor> expected = expected_of(node, reference);
  Extents extents;
  for (std::size_t k = 0; k < node.results.size(); ++k) {
    kept.expected.push_back(rounded(reference.at(node.outputs[k])));
    kept.tolerances.push_back(tolerance_of(node, expected, k, precision, extents));
  }
  return kept;
}

/// What of one device was run by itself already: what fusion leaves as it was has not to be run again.
using Operators = std::set<std::tuple<const Operator*, std::string, std::string>>;

std::tuple<const Operator*, std::string, std::string> key_of(const TraceEntry& entry, const Operator* op) {
  return {op, entry.node, entry.kernel};
}

/// Whether two sides run on the same hardware, where one of them has to wait for the other, and may be the same Device,
/// which serves one thread at a time.
bool share_a_device(std::span<const Side> sides) {
  std::set<std::string> devices;
  for (const Side& side : sides) devices.insert(side.device->info().id);
  return devices.size() < sides.size();
}

void at_once(const Beside::Job& job) { job()(); }

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

}  // namespace

struct OperatorChecks::Check {
  const Batch& batch;
  bool alone;  // operators by themselves, too
  std::int64_t steps_done;
  ReferenceValues reference;
  Extents extents = {};  // of what operators are given and should make

  [[nodiscard]] const Tensor* given(const std::string& name) const {
    const auto found = reference.find(name);
    return found == reference.end() ? nullptr : &found->second.value;
  }
};

/// A node and what its results are held against.
struct OperatorChecks::CheckedNode {
  ReplayedNode node;
  std::vector<Tensor> expected;  // none where the first device has no such results
  bool fused;
};

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
  const std::vector<std::string> of_first = programs_[0].fused.values();
  const std::set<std::string> known(of_first.begin(), of_first.end());
  fuse_alike_ = std::ranges::all_of(programs_, [&](const SidePrograms& side) {
    return std::ranges::all_of(side.fused.values(), [&](const std::string& value) { return known.contains(value); });
  });
  cost_.compile_seconds += seconds_since(start);
}

void OperatorChecks::SidePrograms::feed(const Batch& batch, bool alone) {
  if (alone) concord::feed(single, batch);
  concord::feed(fused, batch);
}

void OperatorChecks::SidePrograms::take_weights(const ReferenceValues& reference) const {
  for (const auto& [name, value] : reference) {
    if (variables->contains(name)) variables->write(name, value.value);
  }
}

/// What a side begins the step with.
ReferenceValues OperatorChecks::weights(std::size_t side) const {
  ReferenceValues weights;
  for (auto& [name, value] : sides_[side].variables->read_all()) weights.emplace(name, ReferenceValue{value, {}, {}});
  return weights;
}

/// Without `alone` the first side's kernels are the reference as they are. Gives what it ran as fusion makes it and not
/// by itself too, which is to be checked.
std::vector<ReplayedNode> OperatorChecks::run_first(bool alone, Check& check, DeviceRun& run) {
  const auto given = [&](const std::string& name) { return check.given(name); };
  std::map<Operators::value_type, ReplayedNode> as_fused;
  std::vector<Operators::value_type> order;
  programs_[0].fused.replay(given, [&](const ReplayedNode& node) {
    for (std::size_t k = 0; k < node.results.size(); ++k) {
      ReferenceValue& value =
          check.reference.emplace(node.outputs[k], ReferenceValue{node.results[k], {}, {}}).first->second;
      if (!alone) value.expected = node.results[k];
    }
    if (!alone) return;
    order.push_back(key_of(node.entry, node.op));
    as_fused.emplace(order.back(), node);
  });
  if (!alone) return {};
  const auto take = [&](const ReplayedNode& node) { add_expected(node, check, run); };
  programs_[0].single.replay(given, take, [&](const TraceEntry& entry, const Operator* op) {
    const auto found = as_fused.find(key_of(entry, op));
    if (found == as_fused.end()) return true;
    take(found->second);
    as_fused.erase(found);
    return false;
  });
  std::vector<ReplayedNode> fused;
  for (const auto& key : order) {
    if (const auto found = as_fused.find(key); found != as_fused.end()) fused.push_back(std::move(found->second));
  }
  return fused;
}

/// `node` is an operator by itself on the first device.
void OperatorChecks::add_expected(const ReplayedNode& node, Check& check, DeviceRun& run) const {
  for (std::size_t k = 0; k < node.results.size(); ++k) {
    ReferenceValue& value =
        check.reference.try_emplace(node.outputs[k], ReferenceValue{node.results[k], {}, {}}).first->second;
    value.expected = node.results[k];
  }
  if (options_.reference != Reference::float64 || !add_exact(node, check.reference, run)) return;
  const auto checked = std::make_shared<const CheckedNode>(CheckedNode{node, node.results, false});
  for (std::size_t k = 0; k < node.results.size(); ++k) {
    // Against itself it would be right whatever it is.
    if (check.reference.at(node.outputs[k]).exact) check_result(checked, k, check, run)();
  }
}

/// How far result k is off, to be noted in the order of the results. The values are kept until then only where they may
/// be written to a file.
Beside::Note OperatorChecks::check_result(const std::shared_ptr<const CheckedNode>& checked, std::size_t k,
                                          Check& check, DeviceRun& run) const {
  const ReplayedNode& node = checked->node;
  Deviation deviation = deviation_of(node, k, checked->expected, check.reference.at(node.outputs[k]), checked->fused,
                                     check.steps_done, options_.precision, check.extents);
  const bool is_case = options_.case_node.empty() ? deviation.diverges() : node.entry.node == options_.case_node;
  return [this, deviation = std::move(deviation), of_case = is_case ? checked : nullptr, &check, &run] {
    if (!std::isinf(deviation.tolerance)) ++run.checked_values;
    keep_worst(run.operators, deviation);
    if (deviation.diverges() && !run.first_deviation) run.first_deviation = deviation;
    if (of_case && !run.kept_case) {
      run.kept_case = case_of(of_case->node, check.reference, of_case->fused, run.device, options_.precision);
    }
  };
}

/// Hands each result of the node to `take`, with what is to be done for it.
void OperatorChecks::check_node(ReplayedNode node, bool fused, Check& check, DeviceRun& run,
                                const std::function<void(Beside::Job)>& take) const {
  std::vector<Tensor> expected = expected_of(node, check.reference);
  const std::size_t results = expected.size();
  const auto checked = std::make_shared<const CheckedNode>(CheckedNode{std::move(node), std::move(expected), fused});
  for (std::size_t k = 0; k < results; ++k) {
    take([this, checked, k, &check, &run] { return check_result(checked, k, check, run); });
  }
}

void OperatorChecks::run_all(const Batch& batch, std::int64_t steps_done, std::span<DeviceRun> runs) {
  compile();
  const Clock::time_point start = Clock::now();
  run(batch, true, steps_done, runs);
  cost_.all_seconds.push_back(seconds_since(start));
}

float OperatorChecks::step_first(const Batch& batch, std::int64_t steps_done, std::span<DeviceRun> runs) {
  compile();
  run(batch, false, steps_done, runs);
  programs_[0].fused.commit();
  return programs_[0].fused.read(step_.loss).values<float>()[0];
}

StepMade OperatorChecks::check_own(std::size_t i, const Batch& batch, std::int64_t steps_done,
                                   std::span<DeviceRun> runs) {
  compile();
  Check check{batch, true, steps_done, weights(i)};
  for (const std::size_t side : {std::size_t{0}, i}) {
    programs_[side].take_weights(check.reference);
    programs_[side].feed(batch, true);
  }
  const auto given = [&](const std::string& name) { return check.given(name); };
  Program& own = programs_[i].fused;
  own.replay(given, [&](const ReplayedNode& node) {
    for (std::size_t k = 0; k < node.results.size(); ++k) {
      check.reference.emplace(node.outputs[k], ReferenceValue{node.results[k], {}, {}});
    }
  });
  StepMade made{own.read(step_.loss).values<float>()[0], {}};
  own.commit();
  made.variables = programs_[i].variables->read_all();
  programs_[0].single.replay(given, [&](const ReplayedNode& node) { add_expected(node, check, runs[0]); });
  check_side(i, {}, check, runs);
  return made;
}

NonFiniteReport OperatorChecks::find_non_finite(std::size_t i, const Batch& batch) {
  compile();
  programs_[i].take_weights(weights(i));
  feed(programs_[i].fused, batch);
  return programs_[i].fused.find_non_finite();
}

void OperatorChecks::run(const Batch& batch, bool alone, std::int64_t steps_done, std::span<DeviceRun> runs) {
  Check check{batch, alone, steps_done, weights(0)};
  const bool first_alone = alone || !fuse_alike_ || options_.reference == Reference::float64;
  programs_[0].feed(batch, first_alone);
  // The reference stays as it is from here on.
  std::vector<ReplayedNode> of_first = run_first(first_alone, check, runs[0]);
  if (sides_.size() == 1) {
    for (ReplayedNode& node : of_first) check_node(std::move(node), true, check, runs[0], at_once);
    return;
  }
  const auto mode = share_a_device(sides_) ? std::launch::deferred : std::launch::async;
  std::vector<std::future<void>> others;
  for (std::size_t i = 2; i < sides_.size(); ++i) {
    others.push_back(std::async(mode, [&, i] { check_side(i, {}, check, runs); }));
  }
  check_side(1, std::move(of_first), check, runs);
  for (std::future<void>& other : others) other.get();
}

/// The device goes on while other threads check `of_first`, nodes of the first device, and what this one has made.
void OperatorChecks::check_side(std::size_t i, std::vector<ReplayedNode> of_first, Check& check,
                                std::span<DeviceRun> runs) {
  Beside checks(checking_threads(), kResultsAhead);
  const auto add = [&](Beside::Job job) { checks.add(std::move(job)); };
  SidePrograms& side = programs_[i];
  side.take_weights(check.reference);
  side.feed(check.batch, check.alone);
  for (ReplayedNode& node : of_first) check_node(std::move(node), true, check, runs[0], add);
  const auto given = [&](const std::string& name) { return check.given(name); };
  Operators checked;
  const auto is_new = [&](const TraceEntry& entry, const Operator* op) {
    return checked.insert(key_of(entry, op)).second;
  };
  const auto replay = [&](Program& program, bool as_fused) {
    program.replay(
        given, [&](const ReplayedNode& node) { check_node(node, as_fused, check, runs[i], add); }, is_new);
  };
  if (check.alone) replay(side.single, false);
  replay(side.fused, true);
  checks.finish();
}

}  // namespace concord
