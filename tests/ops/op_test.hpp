// The harness of the operator tests. A case is a graph over named inputs and the same computation as plain loops in
// double precision; `check` runs it on every device and compares values, gradients (against central differences of
// the loops) and devices with each other.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "concord_test.hpp"

namespace concord::test {

/// Numbers of the reference computation, row-major.
struct Array {
  Shape shape;
  std::vector<double> values;

  Array() = default;
  explicit Array(Shape s) : shape(std::move(s)), values(static_cast<std::size_t>(shape.elements())) {}
  Array(Shape s, std::vector<double> v) : shape(std::move(s)), values(std::move(v)) {}
  [[nodiscard]] double& at(std::initializer_list<std::int64_t> index) { return values[offset(index)]; }
  [[nodiscard]] double at(std::initializer_list<std::int64_t> index) const { return values[offset(index)]; }

 private:
  [[nodiscard]] std::size_t offset(std::initializer_list<std::int64_t> index) const;
};

// Fills. All numbers are floats; equal arguments give equal numbers everywhere.
/// Whole numbers in [-4, 4]: sums of their products are exact.
[[nodiscard]] Array integers(Shape shape, std::uint32_t seed);
/// N(0, deviation²).
[[nodiscard]] Array normal(Shape shape, std::uint32_t seed, double deviation = 1);
[[nodiscard]] Array uniform(Shape shape, std::uint32_t seed, double low, double high);

struct Input {
  Array value;
  DType dtype = DType::f32;
};

using Build = std::function<std::vector<Value>(const std::vector<Value>& inputs)>;
using Reference = std::function<std::vector<Array>(const std::vector<Array>& inputs)>;

/// What the error of an element may be measured by; u = 2^-24.
enum class Scale {
  exact,     // no error, and equal values on all devices; `integers` fill
  products,  // tolerance · u · Σ|a·b|: the reference must be a sum of products of the inputs
  largest,   // tolerance · the largest magnitude of the output
  each,      // tolerance · max(1, magnitude of the element)
};

struct Case {
  std::string name = {};
  std::vector<Input> inputs = {};
  Build build = {};
  Reference reference = {};
  Scale scale = Scale::largest;
  double tolerance = 1e-6;
  /// Of a gradient's element, relative to max(1, largest magnitude); with Scale::products `tolerance` serves.
  double gradient_tolerance = 1e-5;
  bool gradient = true;
  /// Gradients of the f32 inputs for given d loss/d output, when central differences of `reference` take too long.
  std::function<std::vector<Array>(const std::vector<Array>& inputs, const std::vector<Array>& seeds)>
      reference_gradient = {};
};
void check(const Case& test);

/// A variable of the graph that holds `value`: tests feed their operands so, each in a buffer of its own, because
/// Oclgrind 21.10 forgets what it knows of a buffer when the host writes a part of it.
[[nodiscard]] Value operand(Graph& graph, std::size_t index, const Tensor& value);

/// Runs the graph on one device and reads its results.
[[nodiscard]] std::vector<Tensor> run(const DevicePtr& device, const std::vector<Input>& inputs, const Build& build,
                                      const CompileOptions& options = {});

/// The message of the ShapeError that building this graph throws; fails the test when none is thrown.
[[nodiscard]] std::string shape_error(const std::vector<TensorSpec>& inputs, const Build& build);

/// Whether two tensors hold the same numbers (NaN equal to NaN); otherwise says where they differ.
[[nodiscard]] std::string difference(const Tensor& got, const Tensor& expected);

/// The tensor's numbers.
[[nodiscard]] Array to_array(const Tensor& tensor);

}  // namespace concord::test
