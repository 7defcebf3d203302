// Module: names and the stack of modules being traced.
#include "concord/nn/module.hpp"

#include <algorithm>
#include <utility>

#include "concord/core/check.hpp"
#include "concord/nn/substitution.hpp"

namespace concord::nn {
namespace {

/// The modules whose `forward` is running on this thread, outermost first.
thread_local std::vector<std::pair<const Graph*, Module*>> traced;

}  // namespace

std::string Module::name_of(Module& child) {
  for (const Child& named : children()) {
    if (named.module->identity_ == child.identity_) return named.name;
  }
  auto& numbered = identity_->numbered_children;
  return numbered.try_emplace(child.identity_, std::to_string(numbered.size())).first->second;
}

Module::Tracing::Tracing(Graph& graph, Module& module) {
  Module* parent = !traced.empty() && traced.back().first == &graph ? traced.back().second : nullptr;
  if (parent != nullptr) scope_.emplace(graph, parent->name_of(module));
  traced.emplace_back(&graph, &module);
}

Module::Tracing::~Tracing() { traced.pop_back(); }

Value Module::operator()(Value x) {
  CONCORD_CHECK(x, ArgumentError, "a module was called with an empty value");
  const Tracing tracing(x.graph(), *this);
  return forward(x);
}

Value Module::parameter(Graph& graph, const VariablePtr& variable, std::string_view name) {
  if (const Value value = substituted(graph, variable)) return value;
  const auto in_graph = graph.variables();
  if (std::ranges::find(in_graph, variable) == in_graph.end()) variable->name = graph.scoped(name, '.');
  return graph.variable(variable);
}

VariablePtr Module::make_parameter(Shape shape, Initializer init, bool trainable) {
  return std::make_shared<Variable>(Variable{{}, {DType::f32, std::move(shape)}, init, trainable, {}});
}

}  // namespace concord::nn
