// Module: names and the stack of modules being traced.
#include "concord/nn/module.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

#include "concord/core/check.hpp"
#include "concord/nn/substitution.hpp"

namespace concord::nn {
namespace {

/// The modules whose `forward` is running on this thread, outermost first.
thread_local std::vector<std::pair<const Graph*, Module*>> traced;

std::atomic<std::uint64_t> freeze_calls = 0;

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

std::uint64_t Module::freezes() { return freeze_calls; }

void Module::set_frozen(bool frozen) {
  identity_->frozen = frozen;
  identity_->decided = ++freeze_calls;
}

bool Module::frozen_now(const Graph& graph) {
  const Identity* last = nullptr;
  for (const auto& [in, module] : traced) {
    const Identity* identity = module->identity_.get();
    if (in == &graph && (last == nullptr || identity->decided > last->decided)) last = identity;
  }
  return last != nullptr && last->frozen;
}

Value Module::parameter(Graph& graph, const VariablePtr& variable, std::string_view name) {
  if (const Value value = substituted(graph, variable)) return value;
  const auto in_graph = graph.variables();
  if (std::ranges::find(in_graph, variable) == in_graph.end()) variable->name = graph.scoped(name, '.');
  if (frozen_now(graph)) graph.freeze(variable);
  return graph.variable(variable);
}

VariablePtr Module::make_parameter(Shape shape, Initializer init, bool trainable) {
  return std::make_shared<Variable>(Variable{{}, {DType::f32, std::move(shape)}, init, trainable, {}});
}

}  // namespace concord::nn
