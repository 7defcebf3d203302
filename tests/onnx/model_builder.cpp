// See model_builder.hpp.
#include "onnx/model_builder.hpp"

namespace concord::test {

using onnx::AttributeType;
using onnx::ElementType;

onnx::TensorProto float_proto(const std::string& name, std::vector<std::int64_t> dims,
                              const std::vector<float>& values) {
  return {name, std::move(dims), ElementType::f32, onnx::bytes_of(std::as_bytes(std::span(values))), {}};
}

onnx::TensorProto integer_proto(const std::string& name, std::vector<std::int64_t> dims,
                                const std::vector<std::int64_t>& values) {
  return {name, std::move(dims), ElementType::i64, onnx::bytes_of(std::as_bytes(std::span(values))), {}};
}

onnx::Attribute attribute(const std::string& name, std::int64_t value) {
  return {.name = name, .type = AttributeType::i, .i = value};
}

onnx::Attribute attribute(const std::string& name, float value) {
  return {.name = name, .type = AttributeType::f, .f = value};
}

onnx::Attribute attribute(const std::string& name, std::vector<std::int64_t> values) {
  return {.name = name, .type = AttributeType::ints, .ints = std::move(values)};
}

onnx::Attribute attribute(const std::string& name, onnx::GraphDef graph) {
  onnx::Attribute made{.name = name, .type = AttributeType::graph};
  made.graphs.push_back(std::move(graph));
  return made;
}

onnx::Attribute attribute(const std::string& name, onnx::TensorProto tensor) {
  onnx::Attribute made{.name = name, .type = AttributeType::tensor};
  made.tensors.push_back(std::move(tensor));
  return made;
}

onnx::NodeDef node(const std::string& op_type, std::vector<std::string> inputs, std::vector<std::string> outputs,
                   std::vector<onnx::Attribute> attributes) {
  onnx::NodeDef made;
  made.name = outputs.empty() ? "" : outputs[0];
  made.op_type = op_type;
  made.inputs = std::move(inputs);
  made.outputs = std::move(outputs);
  made.attributes = std::move(attributes);
  return made;
}

onnx::ValueInfo declared(const std::string& name, ElementType type, const std::vector<std::int64_t>& dims) {
  onnx::ValueInfo info{name, type};
  auto& shape = info.shape.emplace();
  for (const std::int64_t dim : dims) {
    onnx::Dimension size;
    if (dim >= 0) size.size = dim;
    shape.push_back(size);
  }
  return info;
}

onnx::Model empty_model(std::int64_t opset) {
  onnx::Model model;
  model.ir_version = 8;
  model.opsets = {{"", opset}};
  return model;
}

}  // namespace concord::test
