// Inspection of an ONNX file: see inspection.hpp.
#include "concord/onnx/inspection.hpp"

#include <algorithm>

#include "concord/onnx/host_tensor.hpp"
#include "concord/onnx/interpreter.hpp"
#include "concord/onnx/support.hpp"

namespace concord::onnx {

bool Inspection::is_supported() const {
  return std::ranges::all_of(missing, [](const Missing& one) { return one.in_branch; });
}

Inspection inspect(const std::filesystem::path& path) {
  const Model model = read_complete_model(path);
  Inspection inspection;
  inspection.ir_version = model.ir_version;
  inspection.producer = model.producer;
  for (const OpsetId& opset : model.opsets) inspection.opsets[opset.domain] = opset.version;
  inspection.inputs = open_inputs(model.graph, {});
  for (const ValueInfo& info : model.graph.outputs) inspection.outputs.push_back(declaration_of(info));
  inspection.shape_inputs = shape_inputs_of(model, {});
  const auto count = [&](const auto& self, const std::vector<NodeDef>& nodes) -> void {
    for (const NodeDef& node : nodes) {
      ++inspection.operators[node.domain.empty() ? node.op_type : node.domain + "." + node.op_type];
      if (const TensorProto* const weight = constant_weight(node)) {
        ++inspection.parameters;
        inspection.parameter_elements += weight->elements();
      }
      for (const Attribute& attribute : node.attributes) {
        for (const GraphDef& branch : attribute.graphs) self(self, branch.nodes);
      }
    }
  };
  count(count, model.graph.nodes);
  for (const FunctionDef& function : model.functions) count(count, function.nodes);
  for (const TensorProto& tensor : model.graph.initializers) {
    if (!is_parameter(tensor)) continue;
    ++inspection.parameters;
    inspection.parameter_elements += tensor.elements();
  }
  inspection.missing = missing_of(model);
  return inspection;
}

}  // namespace concord::onnx
