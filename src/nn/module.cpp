// Module: names, and what a graph knows of the modules that are traced in it.
#include "concord/nn/module.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>
#include <typeinfo>
#include <utility>
#if __has_include(<cxxabi.h>)
#include <cxxabi.h>
#endif

#include "concord/core/check.hpp"
#include "concord/core/host_memory.hpp"
#include "concord/core/utf8.hpp"
#include "concord/graph/shard.hpp"
#include "concord/nn/substitution.hpp"

namespace concord::nn {
namespace {

/// So many calls of freeze and unfreeze there were. It orders them, and says nothing about any graph.
std::atomic<std::uint64_t> freeze_calls = 0;

/// A layer's parameter, and what graphs hold of it that have it under another name than the first, or a part of it.
/// They share its ownership: two pointers are one parameter where neither is owner_before the other.
struct Parameter : Variable {
  std::mutex mutex = {};
  std::deque<Variable> renamed = {};
};

/// A deleter that holds the Parameter of a variable. std::get_deleter finds it; a variable that a layer made has none.
struct ParameterOwner {
  Parameter* parameter;
  void operator()(Parameter* held) const { std::default_delete<Parameter>()(held); }
};

/// The parameter under this name; graphs that have it under another keep theirs.
VariablePtr named(const VariablePtr& variable, std::string name, const Shard& shard) {
  const ParameterOwner* const owner = std::get_deleter<ParameterOwner>(variable);
  if (owner == nullptr) {  // made by a layer itself
    CONCORD_CHECK(shard.is_whole(), ArgumentError,
                  "the parameter '{}' cannot be divided among devices: it was not made by Module::make_parameter",
                  name);
    variable->name = std::move(name);
    return variable;
  }
  Parameter& parameter = *owner->parameter;
  const std::lock_guard lock(parameter.mutex);
  if (parameter.name.empty() && shard.is_whole()) parameter.name = name;
  if (parameter.name == name && shard.is_whole()) return {variable, &parameter};
  auto found = std::ranges::find_if(parameter.renamed,
                                    [&](const Variable& other) { return other.name == name && other.shard == shard; });
  if (found == parameter.renamed.end()) {
    found = parameter.renamed.insert(found, Variable{});
    found->name = std::move(name);
    found->role = parameter.role;
    found->shard = shard;
  }
  found->spec = {parameter.spec.dtype, part_of(parameter.spec.shape, shard)};
  found->init = parameter.init;
  found->trainable = parameter.trainable;
  found->value = parameter.value;
  return {variable, &*found};
}

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

void check_child_name(std::string_view parent, std::string_view name) {
  CONCORD_CHECK(!name.empty(), ArgumentError,
                "{} has a child with an empty name; parameters are named after it, so name it", parent);
  CONCORD_CHECK(is_utf8(name), ArgumentError,
                "{} has a child named '{}', which is not UTF-8: it is not valid in a file", parent, printable(name));
}

struct Module::Trace {
  using Owner = std::shared_ptr<Identity>;
  std::vector<Module*> calls;                             // whose `forward` is running, outermost first
  std::map<Owner, std::map<Owner, std::string>> numbers;  // by parent, of the children that children() leaves out
  std::map<Owner, std::uint64_t> decided;                 // Identity::decided of all modules, at their first call
};

std::string Module::name_of(Module& child, Trace& trace) {
  const Children all = children();
  std::map<std::string_view, const Identity*> known;
  std::optional<std::string> found;
  for (const Child& named : all) {
    CONCORD_CHECK(named.module != nullptr, ArgumentError, "children() of a module names '{}', which is a null pointer",
                  named.name);
    const Identity* const identity = named.module->identity_.get();
    check_child_name("a module", named.name);
    const auto [place, is_new] = known.try_emplace(named.name, identity);
    CONCORD_CHECK(is_new || place->second == identity, ArgumentError,
                  "a module has two children named '{}'; give them different names", printable(named.name));
    if (!found && identity == child.identity_.get()) found = named.name;
  }
  if (found) return *found;
  auto& numbered = trace.numbers[identity_];
  if (const auto again = numbered.find(child.identity_); again != numbered.end()) return again->second;
  std::size_t number = numbered.size();
  const auto is_taken = [&](const std::string& name) {
    return known.contains(name) || std::ranges::any_of(numbered, [&](const auto& one) { return one.second == name; });
  };
  while (is_taken(std::to_string(number))) ++number;
  return numbered.emplace(child.identity_, std::to_string(number)).first->second;
}

Module::Tracing::Tracing(Graph& graph, Module& module)
    : graph_(graph), identity_(module.identity_), use_(identity_->tracing, [] { return "a module"; }) {
  Trace& trace = graph.attached<Trace>();
  if (!trace.calls.empty()) scope_.emplace(graph, trace.calls.back()->name_of(module, trace));
  trace.decided.emplace(identity_, identity_->decided);
  trace.calls.push_back(&module);
}

Module::Tracing::~Tracing() { graph_.attached<Trace>().calls.pop_back(); }

Value Module::forward(Value) {
  throw ArgumentError(
      fmt::format("{} takes no single value: it implements neither forward nor forward_values", type_of(*this)));
}

Values Module::forward_values(const Values& inputs) {
  CONCORD_CHECK(inputs.size() == 1, ArgumentError, "{} takes one value, got {}: {}", type_of(*this), inputs.size(),
                inputs.names());
  const Value y = forward(inputs[0]);
  CONCORD_CHECK(y, ArgumentError, "forward of {} returned an empty Value; it must return its result",
                description(inputs[0].graph()));
  return y;
}

Value Module::operator()(Value x) {
  CONCORD_CHECK(x, ArgumentError, "{} was called with an empty Value", type_of(*this));
  const Values outputs = (*this)(Values(x));
  CONCORD_CHECK(outputs.size() == 1, ArgumentError,
                "{} has {} outputs, {}: call it with a list of values, `net({{{{name, x}}}})`", type_of(*this),
                outputs.size(), outputs.names());
  return outputs[0];
}

Values Module::operator()(const Values& inputs) {
  CONCORD_CHECK(!inputs.empty(), ArgumentError, "{} was called without a value", type_of(*this));
  return with_host_memory("building a graph", [&] {
    Graph& graph = inputs[0].graph();
    for (const NamedValue& input : inputs) graph.require_own(input.value, "an input of " + type_of(*this));
    const Tracing tracing(graph, *this);
    const std::vector<std::string> names = input_names();
    Values outputs = forward_values(names.empty() ? inputs : inputs.named(names));
    CONCORD_CHECK(!outputs.empty(), ArgumentError, "forward_values of {} returned no value", description(graph));
    for (const NamedValue& output : outputs) {
      graph.require_own(output.value, "the value that forward of " + description(graph) + " returned");
    }
    return outputs;
  });
}

std::string Module::description(const Graph& graph) const {
  std::string path = graph.scoped("", '.');
  if (!path.empty()) path.pop_back();
  return path.empty() ? "the module " + type_of(*this) : fmt::format("the module {} ({})", path, type_of(*this));
}

bool Module::is_up_to_date(Graph& graph) {
  return std::ranges::all_of(graph.attached<Trace>().decided,
                             [](const auto& traced) { return traced.first->decided == traced.second; });
}

void Module::set_frozen(bool frozen) {
  identity_->frozen = frozen;
  identity_->decided = ++freeze_calls;
}

bool Module::frozen_now(Graph& graph) {
  const Identity* last = nullptr;
  for (const Module* module : graph.attached<Trace>().calls) {
    const Identity* const identity = module->identity_.get();
    if (last == nullptr || identity->decided > last->decided) last = identity;
  }
  return last != nullptr && last->frozen;
}

Value Module::parameter(Graph& graph, const VariablePtr& variable, std::string_view name) {
  return parameter_part(graph, variable, name, {});
}

Value Module::parameter_part(Graph& graph, const VariablePtr& variable, std::string_view name, const Shard& shard) {
  CONCORD_CHECK(variable, ArgumentError,
                "a layer is used after it was moved from: its parameter '{}' is in the layer that it was moved to",
                graph.scoped(name, '.'));
  if (const Value value = substituted(graph, variable)) return value;
  const auto in_graph = graph.variables();
  const auto is_it = [&](const VariablePtr& other) {
    return !other.owner_before(variable) && !variable.owner_before(other);
  };
  const auto found = std::ranges::find_if(in_graph, is_it);
  VariablePtr here = found == in_graph.end() ? nullptr : *found;
  if (!here) {
    std::string full = graph.scoped(name, '.');
    // "__metadata__" is what a file of weights calls its metadata.
    CONCORD_CHECK(!name.empty() && is_utf8(name) && full != "__metadata__", ArgumentError,
                  "a module has a parameter named '{}', which is not valid in a file; give it another name",
                  printable(full));
    here = named(variable, std::move(full), shard);
  }
  CONCORD_CHECK(here->shard == shard, ArgumentError,
                "the parameter '{}' is used by two layers, which do not divide it alike among devices", here->name);
  if (frozen_now(graph)) graph.freeze(here);
  return graph.variable(here);
}

VariablePtr Module::make_parameter(Shape shape, Initializer init, bool trainable) {
  return with_host_memory("making a layer", [&] {
    // Member by member: GCC 12 destroys members of an aggregate twice where its construction throws.
    auto record = std::make_unique<Parameter>();
    Parameter* const parameter = record.get();
    const VariablePtr variable(record.release(), ParameterOwner{parameter});
    variable->spec.shape = std::move(shape);
    variable->init = init;
    variable->trainable = trainable;
    variable->role = VariableRole::parameter;
    return variable;
  });
}

}  // namespace concord::nn
