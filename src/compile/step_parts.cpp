// Gradients are found from the variables that take them: the exchanged ones of a step of several ranks, else the
// parameters, from whose new values the way leads back through the update to the backward pass.
#include "concord/compile/step_parts.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>

#include "concord/core/text.hpp"
#include "concord/ops/pointwise_group.hpp"

namespace concord {
namespace {

constexpr std::string_view kExchanged = "exchange.";  // optim/exchange.cpp

class StepSearch {
 public:
  explicit StepSearch(const ProgramImpl& program) : program_(program), lowered_(program.lowered) {
    for (const LoweredValue& value : lowered_.values) {
      if (is_trained(value)) parameters_.insert(value.name);
    }
    launch_of_.resize(lowered_.values.size());
    for (std::size_t i = 0; i < program.launch_nodes.size(); ++i) {
      for (const ValueId id : lowered_.nodes[program.launch_nodes[i]].outputs) launch_of_[index(id)] = i;
    }
  }

  [[nodiscard]] StepParts run() {
    StepParts found;
    if (program_.launches.empty()) return found;
    std::vector<StepLaunch> launches = passes();
    bool is_step = false, reads_exchanged = false;
    for (const LoweredValue& value : lowered_.values) reads_exchanged |= exchanged_parameter(value).has_value();
    for (const LoweredAssignment& assignment : lowered_.assignments) {
      const LoweredValue& variable = lowered_.value(assignment.variable);
      const std::optional<std::string> exchanged = exchanged_parameter(variable);
      const bool is_update = is_trained(variable);
      is_step = is_step || exchanged || is_update;
      if (exchanged) {
        found.part = RunPart::before_exchange;
        const std::size_t last = launches.size() - 1;
        launches[launch_of(assignment.value).value_or(last)].gradients.emplace_back(*exchanged, variable.spec.bytes());
      } else if (is_update && reads_exchanged) {
        if (found.part == RunPart::whole) found.part = RunPart::after_exchange;
      } else if (is_update) {
        const std::optional<std::size_t> launch = completed_by(assignment.value, variable.spec.shape.elements());
        if (launch) launches[*launch].gradients.emplace_back(variable.name, variable.spec.bytes());
      }
    }
    if (!is_step) return found;
    if (found.part == RunPart::before_exchange) {  // what weighs a gradient is part of the backward pass
      for (StepLaunch& launch : launches) launch.pass = std::min(launch.pass, Pass::gradient);
    }
    found.launches = std::move(launches);
    return found;
  }

 private:
  /// Not a running statistic.
  static bool is_trained(const LoweredValue& value) {
    return value.variable && value.variable->role == VariableRole::parameter && value.variable->trainable;
  }

  static std::size_t index(ValueId id) { return static_cast<std::size_t>(id); }

  [[nodiscard]] std::optional<std::size_t> launch_of(ValueId id) const { return launch_of_[index(lowered_.root(id))]; }

  /// A reorder belongs to what runs before it, and a recomputed node of the forward pass to the backward pass.
  [[nodiscard]] std::vector<StepLaunch> passes() const {
    std::vector<StepLaunch> launches;
    Pass pass = Pass::forward;
    for (const std::size_t number : program_.launch_nodes) {
      const LoweredNode& node = lowered_.nodes[number];
      if (node.op && !node.again) pass = std::max(pass, node.pass);
      launches.push_back({pass, {}});
    }
    return launches;
  }

  /// The parameter whose gradient this variable takes to the other ranks; further terms of a loss have a number.
  [[nodiscard]] std::optional<std::string> exchanged_parameter(const LoweredValue& value) const {
    if (!value.variable || value.variable->role != VariableRole::transient || !value.name.starts_with(kExchanged)) {
      return {};
    }
    std::string name = value.name.substr(kExchanged.size());
    std::string parameter = name;
    while (!parameters_.contains(parameter)) {
      if (parameter.empty() || !is_digit(parameter.back())) return {};
      parameter.pop_back();
    }
    return name;
  }

  /// The last launch of the backward pass that a parameter's new value needs; it and its gradient have `elements`.
  [[nodiscard]] std::optional<std::size_t> completed_by(ValueId value, std::int64_t elements) const {
    std::optional<std::size_t> last;
    std::vector<ValueId> open{value};
    std::set<ValueId> seen;
    while (!open.empty()) {
      const ValueId id = lowered_.root(open.back());
      open.pop_back();
      const std::optional<std::size_t> launch = launch_of(id);
      if (!launch || !seen.insert(id).second) continue;
      const LoweredNode& node = lowered_.nodes[program_.launch_nodes[*launch]];
      const std::size_t before = open.size();
      if (node.op && node.pass == Pass::update) {
        for (const ValueId input : inputs_for(node, id)) {
          if (launch_of(input) && lowered_.value(input).spec.shape.elements() == elements) open.push_back(input);
        }
      }
      // An update that is fused into the operator of the backward pass reads no gradient.
      if (open.size() == before) last = std::max(last.value_or(0), *launch);
    }
    return last;
  }

  /// What one output of a node is computed from.
  [[nodiscard]] static std::vector<ValueId> inputs_for(const LoweredNode& node, ValueId output) {
    const auto* group = dynamic_cast<const ops::PointwiseGroup*>(node.op.get());
    if (group == nullptr) return node.inputs;
    const auto place = static_cast<std::size_t>(std::ranges::find(node.outputs, output) - node.outputs.begin());
    std::vector<ValueId> inputs;
    for (std::size_t i = 0; i < group->reach().size(); ++i) {
      inputs.push_back(node.inputs[group->place_of(place / group->results(), i)]);
    }
    return inputs;
  }

  const ProgramImpl& program_;
  const Lowered& lowered_;
  std::set<std::string> parameters_;
  std::vector<std::optional<std::size_t>> launch_of_;
};

}  // namespace

StepParts step_parts(const ProgramImpl& program) { return StepSearch(program).run(); }

}  // namespace concord
