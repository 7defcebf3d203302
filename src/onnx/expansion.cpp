// Expansion: see expansion.hpp.
#include "concord/onnx/expansion.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "concord/onnx/host_tensor.hpp"

namespace concord::onnx {
namespace {

const Attribute* attribute_of_call(const FunctionDef& function, const NodeDef& call, const std::string& name) {
  if (const Attribute* const given = call.find(name)) return given;
  for (const Attribute& attribute : function.defaults) {
    if (attribute.name == name) return &attribute;
  }
  return nullptr;
}

void instantiate(std::vector<NodeDef>& nodes, const FunctionDef& function, const NodeDef& call) {
  for (NodeDef& node : nodes) {
    std::vector<Attribute> attributes;
    for (Attribute& attribute : node.attributes) {
      if (!attribute.reference.empty()) {
        const Attribute* const given = attribute_of_call(function, call, attribute.reference);
        if (given == nullptr) continue;  // the node's own default counts
        Attribute taken = *given;
        taken.name = attribute.name;
        attributes.push_back(std::move(taken));
        continue;
      }
      for (GraphDef& branch : attribute.graphs) instantiate(branch.nodes, function, call);
      attributes.push_back(std::move(attribute));
    }
    node.attributes = std::move(attributes);
  }
}

}  // namespace

const FunctionDef* function_of(const Model& model, const NodeDef& node) {
  const auto is_called = [&](const FunctionDef& function) {
    return function.name == node.op_type && function.domain == node.domain && function.overload == node.overload;
  };
  const auto found = std::ranges::find_if(model.functions, is_called);
  return found == model.functions.end() ? nullptr : &*found;
}

std::string prefix_of(const std::string& outer, const FunctionDef& function, const NodeDef& call) {
  const std::string& name = !call.name.empty() ? call.name : call.outputs.empty() ? function.name : call.outputs[0];
  return outer + name + ".";
}

bool is_parameter(const TensorProto& initializer) { return is_floating(initializer.type) && !initializer.dims.empty(); }

const TensorProto* constant_weight(const NodeDef& node) {
  if (node.op_type != "Constant" || !node.domain.empty()) return nullptr;
  const Attribute* const value = node.find("value");
  if (value == nullptr || value->tensors.size() != 1) return nullptr;
  const TensorProto& tensor = value->tensors[0];
  return is_floating(tensor.type) && tensor.elements() > 1 ? &tensor : nullptr;
}

Expansion::Expansion(const Model& model) : model_(model) { name_all(model.graph, {}, 0); }

const std::vector<NodeDef>& Expansion::body(const FunctionDef& function, const NodeDef& call) {
  const auto [entry, is_new] = bodies_.try_emplace(&call);
  if (is_new) {
    entry->second = function.nodes;
    instantiate(entry->second, function, call);
  }
  return entry->second;
}

const std::string& Expansion::name_of(const TensorProto& weight, const std::string& wanted) {
  const auto [entry, is_new] = names_.try_emplace(&weight, wanted);
  std::string& name = entry->second;
  for (int suffix = 1; is_new && !taken_.insert(name).second; ++suffix) name = fmt::format("{}_{}", wanted, suffix);
  return name;
}

void Expansion::name_all(const GraphDef& graph, const std::string& prefix, std::size_t depth) {
  for (const TensorProto& tensor : graph.initializers) {
    if (is_parameter(tensor)) static_cast<void>(name_of(tensor, prefix + tensor.name));
  }
  name_all(graph.nodes, prefix, depth);
}

void Expansion::name_all(const std::vector<NodeDef>& nodes, const std::string& prefix, std::size_t depth) {
  for (const NodeDef& node : nodes) {
    const TensorProto* const weight = constant_weight(node);
    if (weight != nullptr && !node.outputs.empty()) static_cast<void>(name_of(*weight, prefix + node.outputs[0]));
  }
  for (const NodeDef& node : nodes) {
    for (const Attribute& attribute : node.attributes) {
      for (const GraphDef& branch : attribute.graphs) name_all(branch, prefix, depth);
    }
    const FunctionDef* const function = function_of(model_, node);
    // A trace refuses what is left out here, unless it is in a branch that it does not take.
    if (function == nullptr || depth >= kDeepestFunction) continue;
    named_nodes_ += function->nodes.size();
    if (named_nodes_ <= kMostExpanded) name_all(body(*function, node), prefix_of(prefix, *function, node), depth + 1);
  }
}

}  // namespace concord::onnx
