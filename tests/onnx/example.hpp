// Nodes that make y of x, and what they give on every device.
#pragma once

#include "onnx/model_builder.hpp"

namespace concord::test {

using Numbers = std::vector<float>;

struct Example {
  std::vector<onnx::NodeDef> nodes;
  std::vector<onnx::TensorProto> initializers = {};
  onnx::ElementType type = onnx::ElementType::f32;
  std::int64_t opset = 17;
};

inline onnx::Model model_of(const Example& example, const std::vector<std::int64_t>& dims) {
  onnx::Model model = empty_model(example.opset);
  model.graph.nodes = example.nodes;
  model.graph.initializers = example.initializers;
  model.graph.inputs = {declared("x", example.type, dims)};
  model.graph.outputs = {onnx::ValueInfo{"y"}};
  return model;
}

inline Tensor tensor_of(DType type, const std::vector<std::int64_t>& dims, const Numbers& numbers) {
  if (type == DType::f32) return Tensor::of<float>(Shape(dims), numbers);
  if (type == DType::u8) {
    return Tensor::of<std::uint8_t>(Shape(dims), std::vector<std::uint8_t>(numbers.begin(), numbers.end()));
  }
  return Tensor::of<std::int32_t>(Shape(dims), std::vector<std::int32_t>(numbers.begin(), numbers.end()));
}

inline Numbers numbers_of(const Tensor& tensor) {
  const auto all = [](const auto values) { return Numbers(values.begin(), values.end()); };
  if (tensor.dtype() == DType::u8) return all(tensor.values<std::uint8_t>());
  return tensor.dtype() == DType::f32 ? all(tensor.values<float>()) : all(tensor.values<std::int32_t>());
}

inline void check(const Example& example, const std::vector<std::int64_t>& dims, const Numbers& x,
                  const Numbers& expected) {
  const ModelFile file(model_of(example, dims));
  const onnx::Network network = onnx::load(file.path());
  for (const DevicePtr& device : devices()) {
    INFO(example.nodes.back().op_type << " on " << device->info().id);
    const Tensor input = tensor_of(onnx::dtype_of(example.type), dims, x);
    const Numbers y = numbers_of(Session(network, device).run({{"x", input}}).at("y"));
    REQUIRE(y.size() == expected.size());
    for (std::size_t i = 0; i < y.size(); ++i) {
      INFO("element " << i << " is " << y[i]);
      CHECK((y[i] == expected[i] || std::abs(y[i] - expected[i]) < 1e-4F));
    }
  }
}

template <class ErrorClass>
std::string refusal(const Example& example, const std::vector<std::int64_t>& dims) {
  const ModelFile file(model_of(example, dims));
  onnx::Network network = onnx::load(file.path());
  Graph graph;
  graph.set_training(false);
  const Value x = graph.input("x", {onnx::dtype_of(example.type), Shape(dims)});
  return message_of<ErrorClass>([&] { (void)network.trace(graph, Values{{"x", x}}); });
}

}  // namespace concord::test
