// Interpreter: see interpreter.hpp.
#include "concord/onnx/interpreter.hpp"

#include <algorithm>
#include <stdexcept>

#include "concord/core/check.hpp"
#include "concord/core/utf8.hpp"
#include "concord/onnx/constant.hpp"
#include "concord/onnx/table.hpp"

namespace concord::onnx {
namespace {

constexpr std::int64_t kMostFolded = 4096;  // elements of a weight that is also computed with on the host
constexpr int kDeepestDeferred = 256;       // values that are made one within the other

std::string place_of(const std::string& file, const NodeDef& node) {
  const std::string name = !node.name.empty()      ? node.name
                           : !node.outputs.empty() ? "-> " + node.outputs[0]
                                                   : std::string("without a name");
  return fmt::format("{}: node '{}' ({}): ", file, printable(name), printable(node.op_type));
}

void count_readers(const std::vector<NodeDef>& nodes, std::unordered_map<std::string, int>& readers) {
  for (const NodeDef& node : nodes) {
    for (const std::string& name : node.inputs) ++readers[name];
    for (const Attribute& attribute : node.attributes) {
      for (const GraphDef& branch : attribute.graphs) {
        count_readers(branch.nodes, readers);
        for (const ValueInfo& output : branch.outputs) ++readers[output.name];
      }
    }
  }
}

}  // namespace

OperandPtr NameScope::find(const std::string& name) const {
  for (const NameScope* scope = this; scope != nullptr; scope = scope->outer) {
    if (const auto found = scope->names.find(name); found != scope->names.end()) return found->second;
  }
  return nullptr;
}

std::int64_t opset_of(const std::vector<OpsetId>& opsets, std::string_view domain) {
  const auto found = std::ranges::find(opsets, domain, &OpsetId::domain);
  return found == opsets.end() ? 0 : found->version;
}

void Interpreter::with_place(const NodeDef& node, const std::function<void()>& action) const {
  const std::string place = place_of(file_, node);
  const auto message = [&](const Error& error) {
    const std::string text = error.what();
    return text.starts_with(file_ + ": node '") ? text : place + text;  // the innermost node is the place
  };
  try {
    action();
  } catch (const ShapeError& error) {
    throw ShapeError(message(error));
  } catch (const ArgumentError& error) {
    throw ArgumentError(message(error));
  } catch (const NotSupported& error) {
    throw NotSupported(message(error));
  } catch (const FormatError& error) {
    throw FormatError(message(error));
  } catch (const std::logic_error& error) {  // an index or a size of a damaged file
    throw FormatError(place + error.what());
  }
}

Value Interpreter::named_value(const std::string& name) {
  const OperandPtr operand = scope_->find(name);
  CONCORD_CHECK(operand, FormatError, "no node before it computes '{}'", printable(name));
  return value_of(*operand);
}

Value Interpreter::value_of(Operand& operand) {
  if (operand.value) return operand.value;
  if (operand.make_value) {
    const auto make = std::exchange(operand.make_value, {});  // which holds the operands before it
    operand.value = make();
  } else if (operand.weight != nullptr) {
    operand.value = parameter_(operand);
  } else {
    CONCORD_CHECK(operand.host, ArgumentError, "an operand has no value");
    operand.value = constant_value(graph_, *operand.host);
  }
  return operand.value;
}

int Interpreter::readers_of(const Value& value) const {
  const auto found = readers_.find(value);
  return found == readers_.end() ? 0 : found->second;
}

const HostTensor* Interpreter::host_of(Operand& operand) {
  if (!operand.host && operand.weight != nullptr && elements_of(operand.dims) <= kMostFolded) {
    operand.host = std::make_shared<const HostTensor>(host_tensor_of(*operand.weight));
  }
  return operand.host.get();
}

OperandPtr Interpreter::weight_operand(const TensorProto& weight, const std::string& wanted_name) {
  auto operand = std::make_shared<Operand>();
  operand->type = weight.type;
  operand->dims = weight.dims;
  operand->weight = &weight;
  operand->name = expansion_.name_of(weight, wanted_name);
  return operand;
}

void Interpreter::enter_initializers(const GraphDef& def, NameScope& scope) {
  for (const TensorProto& tensor : def.initializers) {
    if (scope.names.contains(tensor.name)) continue;  // a known value replaces it
    OperandPtr& operand = scope.names[tensor.name];
    if (is_parameter(tensor)) {
      operand = weight_operand(tensor, scope.prefix + tensor.name);
    } else if (tensor.type != ElementType::string) {
      operand = operand_of(host_tensor_of(tensor));
    }
  }
}

void Interpreter::run(const GraphDef& def, NameScope& scope) {
  enter_initializers(def, scope);
  count_readers(def.nodes, scope.readers);
  for (const ValueInfo& output : def.outputs) ++scope.readers[output.name];
  run_nodes(def.nodes, scope);
}

std::vector<OperandPtr> Interpreter::run_branch(const GraphDef& branch) {
  NameScope scope{scope_, {}, scope_->prefix, scope_->opsets};
  run(branch, scope);
  std::vector<OperandPtr> outputs;
  for (const ValueInfo& output : branch.outputs) {
    const OperandPtr found = scope.find(output.name);
    CONCORD_CHECK(found, FormatError, "the branch has an output '{}', which no node computes", printable(output.name));
    outputs.push_back(found);
  }
  return outputs;
}

void Interpreter::run_nodes(const std::vector<NodeDef>& nodes, NameScope& scope) {
  NameScope* const outer = std::exchange(scope_, &scope);
  for (const NodeDef& node : nodes) {
    scope_ = &scope;
    with_place(node, [&] { run_node(node, scope); });
  }
  scope_ = outer;
}

void Interpreter::run_node(const NodeDef& node, NameScope& scope) {
  std::vector<OperandPtr> inputs;
  for (const std::string& name : node.inputs) {
    const OperandPtr operand = name.empty() ? nullptr : scope.find(name);
    CONCORD_CHECK(operand || name.empty(), FormatError, "no node before it computes its input '{}'", printable(name));
    inputs.push_back(operand);
  }
  if (const TensorProto* const weight = constant_weight(node)) {
    const std::string& name = node.outputs.at(0);
    scope.names[name] = weight_operand(*weight, scope.prefix + name);
    return;
  }
  if (const FunctionDef* const function = function_of(model_, node))
    return run_function(*function, node, inputs, scope);
  const std::int64_t opset = opset_of(*scope.opsets, node.domain);
  const OperatorEntry* const entry = Table::all().find(node.domain, node.op_type, opset);
  CONCORD_CHECK(entry != nullptr, NotSupported, "Concord has no such operator in version {} of its operator set",
                opset);
  if (entry->check != nullptr) {
    const std::string reason = entry->check(node);
    CONCORD_CHECK(reason.empty(), NotSupported, "{}", reason);
  }

  const auto is_known = [&](const OperandPtr& input) { return !input || host_of(*input) != nullptr; };
  const bool on_host = entry->host && std::ranges::all_of(inputs, is_known);
  const bool fixed = std::ranges::all_of(inputs, [](const OperandPtr& input) { return !input || input->fixed; });
  const std::int32_t first_new = graph_.size();
  Call call(*this, node, opset, inputs, on_host);
  entry->run(call);
  if (on_host && !fixed) defer(node, *entry, inputs, call);
  note_not_computed(node, inputs, call.results());
  enter(node, call.results(), first_new, scope);
}

void Interpreter::note_not_computed(const NodeDef& node, const std::vector<OperandPtr>& inputs,
                                    const std::vector<OperandPtr>& results) {
  const auto has_graph = [](const Attribute& attribute) { return !attribute.graphs.empty(); };
  if (std::ranges::any_of(node.attributes, has_graph)) return;  // whose nodes read more than the inputs
  std::string by = node.op_type;
  for (const OperandPtr& input : inputs) {
    if (!input || host_of(*input) != nullptr) continue;
    if (input->not_computed_by.empty()) return;
    by = input->not_computed_by;
  }
  for (const OperandPtr& result : results) {
    if (result && host_of(*result) == nullptr) result->not_computed_by = by;
  }
}

void Interpreter::defer(const NodeDef& node, const OperatorEntry& entry, const std::vector<OperandPtr>& inputs,
                        Call& call) {
  int depth = 1;
  for (const OperandPtr& input : inputs) {
    if (input && input->make_value) depth = std::max(depth, input->deferred + 1);
  }
  auto again = std::make_shared<std::vector<OperandPtr>>();
  for (std::size_t k = 0; k < call.results().size(); ++k) {
    const OperandPtr& result = call.results()[k];
    if (!result || result->value || std::ranges::find(inputs, result) != inputs.end()) continue;
    result->fixed = false;
    result->deferred = depth;
    result->make_value = [this, &node, opset = call.opset(), inputs, &entry, again, k] {
      if (again->empty()) {
        with_place(node, [&] {
          Call in_graph(*this, node, opset, inputs, false);
          entry.run(in_graph);
          *again = std::move(in_graph.results());
        });
      }
      return value_of(*again->at(k));
    };
    if (depth > kDeepestDeferred) static_cast<void>(value_of(*result));
  }
}

void Interpreter::enter(const NodeDef& node, const std::vector<OperandPtr>& results, std::int32_t first_new,
                        NameScope& scope) {
  for (std::size_t k = 0; k < node.outputs.size(); ++k) {
    const std::string& name = node.outputs[k];
    if (name.empty()) continue;
    CONCORD_CHECK(k < results.size() && results[k], NotSupported, "its output {} ('{}') is not supported", k,
                  printable(name));
    const Value value = results[k]->value;
    if (value) {
      const auto [entry, is_first] = readers_.try_emplace(value, 0);
      const auto found = scope.readers.find(name);
      // A value that a node passes on has its readers instead of the node.
      entry->second += (found == scope.readers.end() ? 0 : found->second) - (is_first ? 0 : 1);
    }
    if (value && value.node_id() >= first_new && value.output() == 0 && value.node().op) {
      graph_.rename(value, graph_.scoped(name, '/'));
    }
    scope.names[name] = results[k];
  }
}

void Interpreter::run_function(const FunctionDef& function, const NodeDef& node, const std::vector<OperandPtr>& inputs,
                               NameScope& scope) {
  CONCORD_CHECK(++depth_ <= kDeepestFunction, FormatError, "more than {} functions call each other", kDeepestFunction);
  expanded_ += function.nodes.size();
  CONCORD_CHECK(expanded_ <= kMostExpanded, NotSupported, "the calls of functions have more than {} nodes",
                kMostExpanded);
  NameScope body{nullptr, {}, prefix_of(scope.prefix, function, node), &function.opsets};
  for (std::size_t i = 0; i < function.inputs.size() && i < inputs.size(); ++i) {
    if (inputs[i]) body.names[function.inputs[i]] = inputs[i];
  }
  const std::vector<NodeDef>& nodes = expansion_.body(function, node);
  count_readers(nodes, body.readers);
  for (const std::string& output : function.outputs) ++body.readers[output];
  run_nodes(nodes, body);
  --depth_;
  for (std::size_t k = 0; k < node.outputs.size(); ++k) {
    if (node.outputs[k].empty()) continue;
    const OperandPtr result = k < function.outputs.size() ? body.find(function.outputs[k]) : nullptr;
    CONCORD_CHECK(result, FormatError, "the function computes no output {}", k);
    scope.names[node.outputs[k]] = result;
  }
}

}  // namespace concord::onnx
