// The step compiled with every value kept, and run again.
#include "concord/optim/failure.hpp"

#include <algorithm>
#include <cmath>

#include "concord/core/check.hpp"
#include "concord/ops/all_finite.hpp"

namespace concord::optim {
namespace {

/// The nodes by which `minimize` checks gradients.
std::vector<const Node*> checks_of(const Graph& graph) {
  std::vector<const Node*> checks;
  for (std::int32_t id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    if (dynamic_cast<const ops::AllFinite*>(node.op.get()) != nullptr && node.pass == Pass::update)
      checks.push_back(&node);
  }
  return checks;
}

/// The inputs of `from`, as they are now, for `to`.
void copy_inputs(const Graph& graph, const Program& from, Program& to) {
  const std::vector<std::string> held = from.values(), wanted = to.values();
  for (std::int32_t id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    if (node.op || node.variable) continue;
    const auto has = [&](const std::vector<std::string>& names) {
      return std::ranges::find(names, node.name) != names.end();
    };
    if (has(held) && has(wanted)) to.write(node.name, from.read(node.name));
  }
}

}  // namespace

std::string BadGradient::str() const {
  return fmt::format("the gradient of '{}' ({} of {} elements)", parameter, not_finite, elements);
}

std::optional<BadGradient> first_bad_gradient(const Graph& graph, const Program& kept) {
  std::optional<BadGradient> first;
  std::int32_t first_node = graph.size();
  for (const Node* check : checks_of(graph)) {
    const auto& names = dynamic_cast<const ops::AllFinite&>(*check->op).names();
    for (std::size_t i = 0; i < names.size(); ++i) {
      const Value gradient = check->inputs[i];
      if (gradient.node_id() >= first_node) continue;
      const Tensor values = kept.read(gradient);
      const std::int64_t bad = std::ranges::count_if(values.values<float>(), [](float v) { return !std::isfinite(v); });
      if (bad == 0) continue;
      first = BadGradient{names[i], values.elements(), bad};
      first_node = gradient.node_id();
    }
  }
  return first;
}

void require_applied(const Graph& graph, const Program& program, const CompileOptions& options,
                     const std::string& name) {
  Variables& variables = program.variables();
  if (variables.read(counter_name(kOk, name)).values<float>()[0] != 0) return;
  std::string where;
  try {
    CompileOptions kept = options;
    kept.fuse = false;
    kept.retain = Retain::all;
    kept.memory_budget = 0;
    const auto shared = std::shared_ptr<Variables>(std::shared_ptr<Variables>(), &variables);
    Program again = compile(graph, {}, shared, kept);
    copy_inputs(graph, program, again);
    if (const NonFiniteReport report = again.find_non_finite(); report.found) {
      where += ": the first such value is " + report.str();
    }
    again.run();  // changes nothing
    if (const auto gradient = first_bad_gradient(graph, again)) where += "; also not finite: " + gradient->str();
  } catch (const Error& error) {
    where = fmt::format(" (the step could not be run again: {})", error.what());
  }
  throw NonFinite(
      fmt::format("the loss or a gradient of a training step is not finite{}. All variables keep their values from "
                  "before that step. {}",
                  where, kNonFiniteAdvice));
}

}  // namespace concord::optim
