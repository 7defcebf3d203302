// Local functions: the body of a function with the attributes of a call.
#include "concord/core/check.hpp"
#include "concord/onnx/interpreter.hpp"

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

std::vector<NodeDef> instantiated(const FunctionDef& function, const NodeDef& call) {
  std::vector<NodeDef> nodes = function.nodes;
  instantiate(nodes, function, call);
  return nodes;
}

}  // namespace concord::onnx
