// What the tests of tensors without elements share: a form of an operator, its inputs, and its results.
#pragma once

#include "ops/op_test.hpp"

namespace concord::test {

struct EmptyForm {
  std::string name;
  std::vector<TensorSpec> inputs;
  Build build;
};

inline TensorSpec f32(Shape shape) { return {DType::f32, std::move(shape)}; }
inline TensorSpec i32(Shape shape) { return {DType::i32, std::move(shape)}; }

inline Tensor numbers(const TensorSpec& spec) {
  Tensor tensor(spec.dtype, spec.shape);
  const auto fill = [](auto values) {
    using T = typename decltype(values)::element_type;
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<T>(i % 3);
  };
  if (spec.dtype == DType::i32) {
    fill(tensor.values<std::int32_t>());
  } else {
    fill(tensor.values<float>());
  }
  return tensor;
}

/// The values of `results`, which were built of the inputs of `form`.
inline std::vector<Tensor> read_results(const DevicePtr& device, const EmptyForm& form, const Graph& graph,
                                        const std::vector<Value>& results) {
  REQUIRE(!results.empty());
  Program program = compile(graph, results, std::make_shared<Variables>(device, 7));
  for (std::size_t i = 0; i < form.inputs.size(); ++i) {
    program.write("x" + std::to_string(i), numbers(form.inputs[i]));
  }
  program.run();
  std::vector<Tensor> read;
  for (const Value& result : results) read.push_back(program.read(result));
  return read;
}

}  // namespace concord::test
