// Module: names and the stack of modules being traced.
#include "concord/nn/module.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <typeinfo>
#include <utility>
#if __has_include(<cxxabi.h>)
#include <cxxabi.h>
#endif

#include "concord/core/check.hpp"
#include "concord/core/host_memory.hpp"
#include "concord/nn/substitution.hpp"

namespace concord::nn {
namespace {

/// The modules whose `forward` is running on this thread, outermost first.
thread_local std::vector<std::pair<const Graph*, Module*>> traced;

std::atomic<std::uint64_t> freeze_calls = 0;

/// "concord::nn::ReLU".
std::string type_of(const Module& module) {
  const char* const name = typeid(module).name();
#if __has_include(<cxxabi.h>)
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> plain(abi::__cxa_demangle(name, nullptr, nullptr, &status), std::free);
  if (plain) return plain.get();
#endif
  return name;
}

}  // namespace

std::string Module::name_of(Module& child) {
  for (const Child& named : children()) {
    CONCORD_CHECK(named.module != nullptr, ArgumentError, "children() of a module names '{}', which is a null pointer",
                  named.name);
    if (named.module->identity_ == child.identity_) return named.name;
  }
  auto& numbered = identity_->numbered_children;
  return numbered.try_emplace(child.identity_, std::to_string(numbered.size())).first->second;
}

Module::Tracing::Tracing(Graph& graph, Module& module)
    : identity_(module.identity_), use_(identity_->tracing, [] { return "a module"; }) {
  Module* parent = !traced.empty() && traced.back().first == &graph ? traced.back().second : nullptr;
  if (parent != nullptr) scope_.emplace(graph, parent->name_of(module));
  traced.emplace_back(&graph, &module);
}

Module::Tracing::~Tracing() { traced.pop_back(); }

Value Module::operator()(Value x) {
  CONCORD_CHECK(x, ArgumentError, "{} was called with an empty Value", type_of(*this));
  return with_host_memory("building a graph", [&] {
    Graph& graph = x.graph();
    const Tracing tracing(graph, *this);
    const Value y = forward(x);
    CONCORD_CHECK(y, ArgumentError,
                  "forward of {} returned an empty Value; it must return what it computed of its argument",
                  description(graph));
    graph.require_own(y, "what forward of " + description(graph) + " returned");
    return y;
  });
}

std::string Module::description(const Graph& graph) const {
  std::string path = graph.scoped("", '.');
  if (!path.empty()) path.pop_back();
  return path.empty() ? "the module " + type_of(*this) : fmt::format("the module {} ({})", path, type_of(*this));
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
  CONCORD_CHECK(variable, ArgumentError,
                "a layer is called that was moved from: its parameter '{}' is in the layer that it was moved to",
                graph.scoped(name, '.'));
  if (const Value value = substituted(graph, variable)) return value;
  const auto in_graph = graph.variables();
  if (std::ranges::find(in_graph, variable) == in_graph.end()) variable->name = graph.scoped(name, '.');
  if (frozen_now(graph)) graph.freeze(variable);
  return graph.variable(variable);
}

VariablePtr Module::make_parameter(Shape shape, Initializer init, bool trainable) {
  return with_host_memory("making a layer", [&] {
    return std::make_shared<Variable>(Variable{{}, {DType::f32, std::move(shape)}, init, trainable, {}});
  });
}

}  // namespace concord::nn
