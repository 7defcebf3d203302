// Replays the programs of the step and compares their results with the reference.
#include "concord/compare/run/check_operators.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <future>
#include <set>
#include <tuple>
#include <utility>

#include "concord/compare/reference64/evaluate.hpp"
#include "concord/compare/run/deviation.hpp"
#include "concord/compare/tolerance/magnitude.hpp"
#include "concord/compare/tolerance/tolerance.hpp"
#include "concord/core/control_groups.hpp"

namespace concord {
namespace {

constexpr std::size_t kResultsAhead = 8;  // of nodes replayed and not checked yet: they take memory

/// Of each device. The device and others compute meanwhile, perhaps on the same cores.
std::size_t checking_threads() { return static_cast<std::size_t>(std::clamp(usable_processors() / 4, 1, 3)); }

/// Adds the host's results for a node in double precision. Returns false for a node without a reference, as formulas of
/// integers are; the first device's results then stay the reference.
bool add_exact(const ReplayedNode& node, ReferenceValues& reference, DeviceRun& run) {
  float64::Results exact = float64::evaluate(node);
  if (!exact || std::ranges::all_of(*exact, &float64::Values::empty)) {
    if (std::ranges::find(run.unreferenced, node.entry.op) == run.unreferenced.end()) {
      run.unreferenced.push_back(node.entry.op);
    }
    return false;
  }
  const std::vector<Tensor> right = float64::right_results(node, *exact);
  for (std::size_t k = 0; k < node.results.size(); ++k) {
    if ((*exact)[k].empty()) continue;
    ReferenceValue& value = reference.at(node.outputs[k]);
    value.expected = right[k];
    value.exact = std::move((*exact)[k]);
  }
  return true;
}

/// The results that those of the node are compared with, as f32. Empty if the first device has no such results.
std::vector<Tensor> expected_of(const ReplayedNode& node, const ReferenceValues& reference) {
  std::vector<Tensor> expected;
  for (const std::string& name : node.outputs) {
    const auto found = reference.find(name);
    if (found == reference.end() || !found->second.expected) return {};
    expected.push_back(*found->second.expected);
  }
  return expected;
}

OperatorCase case_of(const ReplayedNode& node, const ReferenceValues& reference, Form form, const DeviceInfo& device,
                     Precision precision) {
  OperatorCase kept{.node = node.entry.node,
                    .op = node.entry.op,
                    .attributes = node.op->attributes(),
                    .fused = form == Form::fused,
                    .device = device.id,
                    .kernel = node.entry.kernel,
                    .outputs = node.outputs,
                    .results = node.results};
  for (std::size_t i = 0; i < node.inputs.size(); ++i) kept.inputs.emplace(node.input_names[i], node.inputs[i]);
  const std::vector<Tensor> expected = expected_of(node, reference);
  Magnitudes magnitudes;
  for (std::size_t k = 0; k < node.results.size(); ++k) {
    kept.expected.push_back(*reference.at(node.outputs[k]).expected);
    kept.tolerances.push_back(tolerance_of(node, expected, k, precision, magnitudes));
  }
  return kept;
}

/// The operators of one device that were checked already. If fusion did not change an operator, it does not run again.
using Operators = std::set<std::tuple<const Operator*, std::string, std::string>>;

std::tuple<const Operator*, std::string, std::string> key_of(const TraceEntry& entry, const Operator* op) {
  return {op, entry.node, entry.kernel};
}

/// Whether two replicas run on the same hardware. One of them must then wait for the other. They may also share one
/// Device, which only one thread at a time may use.
bool share_a_device(std::span<const Replica> sides) {
  std::set<std::string> devices;
  for (const Replica& side : sides) devices.insert(side.device->info().id);
  return devices.size() < sides.size();
}

void at_once(const OrderedWorkers::Job& job) { job()(); }

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

}  // namespace

struct OperatorChecks::Check {
  Forms forms;
  std::int64_t steps_done;
  ReferenceValues reference;     // at first the values before the step: weights and batch
  std::vector<Device*> reading;  // by replica: has the weights, or copies them from the reference; else null
  Magnitudes magnitudes = {};    // of the inputs and of the expected results

  Check(Forms what, std::int64_t steps, ReferenceValues values, std::size_t sides)
      : forms(what), steps_done(steps), reference(std::move(values)), reading(sides) {}
  Check(const Check&) = delete;
  Check& operator=(const Check&) = delete;
  /// After an exception, devices may still copy from the reference.
  ~Check() {
    for (Device* device : reading) {
      try {
        if (device != nullptr) device->finish();
      } catch (...) {  // a lost device copies nothing more
      }
    }
  }

  [[nodiscard]] const Tensor* given(const std::string& name) const {
    const auto found = reference.find(name);
    return found == reference.end() ? nullptr : &found->second.value;
  }
};

/// A node and the values that its results are compared with.
struct OperatorChecks::CheckedNode {
  ReplayedNode node;
  std::vector<Tensor> expected;  // none where the first device has no such results
  Form form;
};

// The first replica uses its own variables, because a replay does not change them.
void OperatorChecks::compile() {
  if (!programs_.empty()) return;
  const Clock::time_point start = Clock::now();
  for (const Replica& side : sides_) {
    const VariablesPtr variables =
        programs_.empty() ? side.variables : std::make_shared<Variables>(side.device, options_.seed);
    programs_.push_back({variables, step_.compiled(variables, {.retain = Retain::all}),
                         step_.compiled(variables, {.retain = Retain::fused})});
  }
  const std::vector<std::string> of_first = programs_[0].fused.values();
  const std::set<std::string> known(of_first.begin(), of_first.end());
  fuse_alike_ = std::ranges::all_of(programs_, [&](const SidePrograms& side) {
    return std::ranges::all_of(side.fused.values(), [&](const std::string& value) { return known.contains(value); });
  });
  cost_.compile_seconds += seconds_since(start);
}

/// The values of a replica before the step.
ReferenceValues OperatorChecks::beginning(std::size_t side, const Batch& batch) const {
  ReferenceValues values;
  const auto add = [&](const auto& name, const Tensor& value) { values.emplace(name, ReferenceValue{value, {}, {}}); };
  for (const auto& [name, value] : sides_[side].variables->read_all()) add(name, value);
  for (const auto& [name, column] : batch) add(name, column);
  return values;
}

/// Gives the replica's programs the weights of the reference.
void OperatorChecks::take_weights(std::size_t side, Check& check) const {
  if (check.reading[side] != nullptr) return;
  Variables& variables = *programs_[side].variables;
  check.reading[side] = &variables.device();
  for (const auto& [name, value] : check.reference) {
    if (variables.contains(name)) variables.write_deferred(name, value.value);
  }
  variables.device().flush();
}

/// With Forms::fused, the results of the first replica's fused kernels are the reference. Otherwise returns the nodes
/// that ran as fused but not unfused; the caller checks them.
std::vector<ReplayedNode> OperatorChecks::run_first(Forms forms, Check& check, DeviceRun& run) {
  const auto given = [&](const std::string& name) { return check.given(name); };
  std::map<Operators::value_type, ReplayedNode> as_fused;
  std::vector<Operators::value_type> order;
  programs_[0].fused.replay(given, [&](const ReplayedNode& node) {
    for (std::size_t k = 0; k < node.results.size(); ++k) {
      ReferenceValue& value =
          check.reference.emplace(node.outputs[k], ReferenceValue{node.results[k], {}, {}}).first->second;
      if (forms == Forms::fused) value.expected = node.results[k];
    }
    if (forms == Forms::fused) return;
    order.push_back(key_of(node.entry, node.op));
    as_fused.emplace(order.back(), node);
  });
  if (forms == Forms::fused) return {};
  std::vector<std::optional<ReplayedNode>> unfused;  // in the order of execution; none: its results are still to come
  std::size_t next = 0;
  const auto take = [&](const ReplayedNode& node) {
    while (unfused[next]) ++next;
    unfused[next] = node;
  };
  programs_[0].single.replay(given, take, [&](const TraceEntry& entry, const Operator* op) {
    const auto found = as_fused.find(key_of(entry, op));
    unfused.push_back(found == as_fused.end() ? std::nullopt : std::optional(std::move(found->second)));
    if (found != as_fused.end()) as_fused.erase(found);
    return !unfused.back();
  });
  for (const std::optional<ReplayedNode>& node : unfused) add_expected(*node, check, run);
  std::vector<ReplayedNode> fused;
  for (const auto& key : order) {
    if (const auto found = as_fused.find(key); found != as_fused.end()) fused.push_back(std::move(found->second));
  }
  return fused;
}

/// `node` is an unfused operator on the first device.
void OperatorChecks::add_expected(const ReplayedNode& node, Check& check, DeviceRun& run) const {
  for (std::size_t k = 0; k < node.results.size(); ++k) {
    ReferenceValue& value =
        check.reference.try_emplace(node.outputs[k], ReferenceValue{node.results[k], {}, {}}).first->second;
    value.expected = node.results[k];
  }
  if (options_.reference != Reference::float64 || !add_exact(node, check.reference, run)) return;
  const auto checked =
      std::make_shared<const CheckedNode>(CheckedNode{node, expected_of(node, check.reference), Form::alone});
  for (std::size_t k = 0; k < node.results.size(); ++k) {
    // Compared with itself it would always be right.
    if (check.reference.at(node.outputs[k]).exact) check_result(checked, k, check, run)();
  }
}

/// Compares result k with its reference. The returned note is called in the order of the results. The values are kept
/// until then only if they may be written to a file.
OrderedWorkers::Note OperatorChecks::check_result(const std::shared_ptr<const CheckedNode>& checked, std::size_t k,
                                                  Check& check, DeviceRun& run) const {
  const ReplayedNode& node = checked->node;
  const ReferenceValue& reference = check.reference.at(node.outputs[k]);
  Deviation deviation = deviation_of(node, k, checked->expected, reference.exact, options_.precision, check.magnitudes);
  deviation.step = check.steps_done;
  deviation.form = checked->form;
  const bool is_case = options_.case_node.empty() ? deviation.diverges() : node.entry.node == options_.case_node;
  return [this, deviation = std::move(deviation), of_case = is_case ? checked : nullptr, &check, &run] {
    if (!std::isinf(deviation.tolerance)) ++run.checked_values;
    keep_worst(run.operators, deviation);
    if (deviation.diverges() && !run.first_deviation) run.first_deviation = deviation;
    if (of_case && (!run.kept_case || (deviation.diverges() && !diverges(*run.kept_case)))) {
      run.kept_case = case_of(of_case->node, check.reference, of_case->form, run.device, options_.precision);
    }
  };
}

/// Hands each result of the node to `take`, with what is to be done for it.
void OperatorChecks::check_node(ReplayedNode node, Form form, Check& check, DeviceRun& run,
                                const std::function<void(OrderedWorkers::Job)>& take) const {
  std::vector<Tensor> expected = expected_of(node, check.reference);
  const std::size_t results = expected.size();
  const auto checked = std::make_shared<const CheckedNode>(CheckedNode{std::move(node), std::move(expected), form});
  for (std::size_t k = 0; k < results; ++k) {
    take([this, checked, k, &check, &run] { return check_result(checked, k, check, run); });
  }
}

void OperatorChecks::run_all(const Batch& batch, std::int64_t steps_done, std::span<DeviceRun> runs) {
  compile();
  const Clock::time_point start = Clock::now();
  Check check(Forms::both, steps_done, beginning(0, batch), sides_.size());
  run(check, runs, [] {});
  cost_.all_seconds.push_back(seconds_since(start));
}

float OperatorChecks::step_first(const Batch& batch, std::int64_t steps_done, std::span<DeviceRun> runs,
                                 const std::function<void()>& others) {
  compile();
  Check check(Forms::fused, steps_done, beginning(0, batch), sides_.size());
  for (std::size_t i = 1; i < sides_.size(); ++i) {
    if (sides_[i].device->info().kind == DeviceKind::cpu) take_weights(i, check);
  }
  others();
  Program& first = programs_[0].fused;
  run(check, runs, [&] { first.commit(); });
  return first.read(step_.loss).values<float>()[0];
}

StepMade OperatorChecks::check_own(std::size_t i, const Batch& batch, std::int64_t steps_done,
                                   std::span<DeviceRun> runs) {
  compile();
  Check check(Forms::both, steps_done, beginning(i, batch), sides_.size());
  for (const std::size_t side : {std::size_t{0}, i}) take_weights(side, check);
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
  check.reading[i] = nullptr;  // to begin the check with the weights again; what was read here came after their copies
  programs_[0].single.replay(given, [&](const ReplayedNode& node) { add_expected(node, check, runs[0]); });
  check.reading[0] = nullptr;
  check_side(i, {}, check, runs);
  return made;
}

NonFiniteReport OperatorChecks::find_non_finite(std::size_t i, const Batch& batch) {
  compile();
  Variables& variables = *programs_[i].variables;
  for (const auto& [name, value] : sides_[i].variables->read_all()) {
    if (variables.contains(name)) variables.write(name, value);
  }
  feed(programs_[i].fused, batch);
  return programs_[i].fused.find_non_finite();
}

void OperatorChecks::run(Check& check, std::span<DeviceRun> runs, const std::function<void()>& first_done) {
  const bool is_reference_as_fused = fuse_alike_ && options_.reference == Reference::device;
  const Forms of_reference = is_reference_as_fused ? check.forms : Forms::both;
  // From here on the reference does not change.
  std::vector<ReplayedNode> of_first = run_first(of_reference, check, runs[0]);
  if (sides_.size() == 1) {
    for (ReplayedNode& node : of_first) check_node(std::move(node), Form::fused, check, runs[0], at_once);
  }
  const auto mode = share_a_device(sides_) ? std::launch::deferred : std::launch::async;
  std::vector<std::future<void>> beside;
  beside.push_back(std::async(mode, first_done));
  for (std::size_t i = 2; i < sides_.size(); ++i) {
    beside.push_back(std::async(mode, [&, i] { check_side(i, {}, check, runs); }));
  }
  if (sides_.size() > 1) check_side(1, std::move(of_first), check, runs);
  for (std::future<void>& one : beside) one.get();
}

/// The device continues while other threads check `of_first`, nodes of the first device, and its own results.
void OperatorChecks::check_side(std::size_t i, std::vector<ReplayedNode> of_first, Check& check,
                                std::span<DeviceRun> runs) {
  OrderedWorkers checks(checking_threads(), kResultsAhead);
  const auto add = [&](OrderedWorkers::Job job) { checks.add(std::move(job)); };
  SidePrograms& side = programs_[i];
  take_weights(i, check);
  for (ReplayedNode& node : of_first) check_node(std::move(node), Form::fused, check, runs[0], add);
  const auto given = [&](const std::string& name) { return check.given(name); };
  Operators checked;
  const auto is_new = [&](const TraceEntry& entry, const Operator* op) {
    return checked.insert(key_of(entry, op)).second;
  };
  const auto replay = [&](Program& program, Form form) {
    program.replay(
        given, [&](const ReplayedNode& node) { check_node(node, form, check, runs[i], add); }, is_new);
  };
  if (check.forms == Forms::both) replay(side.single, Form::alone);
  replay(side.fused, Form::fused);
  check.reading[i] = nullptr;  // a replay ends when the device is done
  checks.finish();
}

}  // namespace concord
