// Running operator cases: graph with gradients on every device, central differences of the reference.
#include "ops/op_test.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace concord::test {
namespace {

constexpr double kUnit = 0x1p-24;

// SplitMix64 (Steele, Lea and Flood, 2014): the fills must not depend on a standard library.
class Stream {
 public:
  explicit Stream(std::uint32_t seed) : state_(seed * 0x9E3779B97F4A7C15ULL) {}
  double uniform() {
    state_ += 0x9E3779B97F4A7C15ULL;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
  }

 private:
  std::uint64_t state_;
};

Array filled(Shape shape, const std::function<double()>& next) {
  Array array(std::move(shape));
  for (double& v : array.values) v = static_cast<double>(static_cast<float>(next()));
  return array;
}

Tensor to_tensor(const Input& input) {
  Tensor tensor(input.dtype, input.value.shape);
  const auto copy = [&](auto values) {
    using T = typename decltype(values)::element_type;
    std::ranges::transform(input.value.values, values.begin(), [](double v) { return static_cast<T>(v); });
  };
  switch (input.dtype) {
    case DType::f32: copy(tensor.values<float>()); break;
    case DType::i32: copy(tensor.values<std::int32_t>()); break;
    case DType::u8: copy(tensor.values<std::uint8_t>()); break;
    default: throw NotSupported("test inputs are f32, i32 or u8");
  }
  return tensor;
}

// The case's own inputs, then one seed an f32 output: d loss / d output.
std::vector<Input> with_seeds(const Case& test, const std::vector<Array>& outputs) {
  std::vector<Input> inputs = test.inputs;
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    const auto seed = static_cast<std::uint32_t>(1000 + k);
    inputs.push_back({test.scale == Scale::exact ? integers(outputs[k].shape, seed) : normal(outputs[k].shape, seed)});
  }
  return inputs;
}

// The case's outputs, then the gradients of loss = Σ output · seed for its f32 inputs.
Build with_gradient(const Case& test) {
  return [&test](const std::vector<Value>& all) {
    const std::vector<Value> inputs(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(test.inputs.size()));
    std::vector<Value> results = test.build(inputs);
    if (!test.gradient) return results;
    Value loss;
    for (std::size_t k = 0; k < results.size(); ++k) {
      if (results[k].dtype() != DType::f32) continue;
      const Value term = sum(results[k] * all[inputs.size() + k]);
      loss = loss ? loss + term : term;
    }
    std::vector<Value> wanted;
    std::ranges::copy_if(inputs, std::back_inserter(wanted), [](Value v) { return v.dtype() == DType::f32; });
    std::ranges::copy(gradient(loss, wanted), std::back_inserter(results));
    return results;
  };
}

double loss_of(const Case& test, const std::vector<Array>& inputs, const std::vector<Array>& seeds) {
  const std::vector<Array> outputs = test.reference(inputs);
  double loss = 0;
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    for (std::size_t i = 0; i < outputs[k].values.size(); ++i) loss += outputs[k].values[i] * seeds[k].values[i];
  }
  return loss;
}

// ∂loss/∂inputs[which]; NaN where the loss has a kink.
Array central_differences(const Case& test, std::vector<Array> inputs, const std::vector<Array>& seeds,
                          std::size_t which) {
  Array slopes(inputs[which].shape);
  const double middle = loss_of(test, inputs, seeds);
  for (std::size_t i = 0; i < slopes.values.size(); ++i) {
    const double x = inputs[which].values[i];
    const double h = 1e-5 * std::max(1.0, std::abs(x));
    inputs[which].values[i] = x + h;
    const double above = loss_of(test, inputs, seeds);
    inputs[which].values[i] = x - h;
    const double below = loss_of(test, inputs, seeds);
    inputs[which].values[i] = x;
    const double slope = (above - below) / (2 * h);
    const double bend = std::abs(above - 2 * middle + below) / h;
    slopes.values[i] = bend > 1e-2 * std::max(1.0, std::abs(slope)) ? std::nan("") : slope;
  }
  return slopes;
}

std::vector<Array> gradients_of(const Case& test, const std::vector<Array>& inputs, const std::vector<Array>& seeds) {
  if (test.reference_gradient) return test.reference_gradient(inputs, seeds);
  std::vector<Array> gradients;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (test.inputs[i].dtype == DType::f32) gradients.push_back(central_differences(test, inputs, seeds, i));
  }
  return gradients;
}

double largest(const Array& array) {
  double most = 0;
  for (const double v : array.values) {
    if (std::isfinite(v)) most = std::max(most, std::abs(v));
  }
  return most;
}

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

// Empty when every |got - expected| is within bound(i); else the worst element.
std::string compare(const Array& got, const Array& expected, const std::function<double(std::size_t)>& bound) {
  if (got.shape != expected.shape) return fmt::format("shape {} instead of {}", got.shape.str(), expected.shape.str());
  std::string worst;
  double most = 1;
  int bad = 0;
  for (std::size_t i = 0; i < got.values.size(); ++i) {
    const double a = got.values[i];
    const double b = expected.values[i];
    if (same(a, b) || std::abs(a - b) <= bound(i)) continue;
    ++bad;
    const double excess =
        std::isfinite(a - b) ? std::abs(a - b) / std::max(bound(i), 1e-300) : std::numeric_limits<double>::infinity();
    if (excess < most && !worst.empty()) continue;
    most = excess;
    worst = fmt::format("element {}: got {:.9g}, expected {:.9g}, bound {:.3g}", i, a, b, bound(i));
  }
  return bad == 0 ? "" : fmt::format("{} of {} elements of {} off; {}", bad, got.values.size(), got.shape.str(), worst);
}

// NaN in `expected` means "not checked" here: a kink.
std::string compare_gradient(const Array& got, Array expected, const std::function<double(std::size_t)>& bound) {
  for (std::size_t i = 0; i < got.values.size(); ++i) {
    if (std::isnan(expected.values[i])) expected.values[i] = got.values[i];
  }
  return compare(got, expected, bound);
}

std::vector<Array> magnitudes(std::vector<Array> arrays) {
  for (Array& array : arrays) {
    for (double& v : array.values) v = std::abs(v);
  }
  return arrays;
}

// What a case must give, computed once for all devices.
struct Expected {
  std::vector<Array> outputs, gradients;                  // gradients of the f32 inputs
  std::vector<Array> output_products, gradient_products;  // Σ|a·b|, Scale::products only
};

Expected expectation(const Case& test, const std::vector<Array>& inputs, const std::vector<Array>& seeds) {
  Expected expected;
  expected.outputs = test.reference(inputs);
  const bool products = test.scale == Scale::products;
  if (products) expected.output_products = test.reference(magnitudes(inputs));
  if (test.gradient) expected.gradients = gradients_of(test, inputs, seeds);
  if (test.gradient && products) {
    expected.gradient_products = gradients_of(test, magnitudes(inputs), magnitudes(seeds));
  }
  return expected;
}

std::string compare_output(const Case& test, const Expected& expected, std::size_t k, const Array& got) {
  const Array& wanted = expected.outputs[k];
  switch (test.scale) {
    case Scale::exact: return compare(got, wanted, [](std::size_t) { return 0.0; });
    case Scale::products:
      return compare(got, wanted,
                     [&](std::size_t i) { return test.tolerance * kUnit * expected.output_products[k].values[i]; });
    case Scale::largest: return compare(got, wanted, [&](std::size_t) { return test.tolerance * largest(wanted); });
    case Scale::each:
      return compare(got, wanted,
                     [&](std::size_t i) { return test.tolerance * std::max(1.0, std::abs(wanted.values[i])); });
  }
  return "unknown scale";
}

std::string compare_gradient(const Case& test, const Expected& expected, std::size_t g, const Array& got) {
  const Array& wanted = expected.gradients[g];
  const double rounding = 1e-7 * std::max(1.0, largest(wanted));  // of the central differences
  return compare_gradient(got, wanted, [&](std::size_t i) {
    if (test.scale == Scale::products)
      return test.tolerance * kUnit * expected.gradient_products[g].values[i] + rounding;
    return test.gradient_tolerance * std::max(1.0, largest(wanted));
  });
}

}  // namespace

std::size_t Array::offset(std::initializer_list<std::int64_t> index) const {
  std::int64_t offset = 0;
  std::size_t axis = 0;
  for (const std::int64_t i : index) offset = offset * shape.dims()[axis++] + i;
  return static_cast<std::size_t>(offset);
}

Array integers(Shape shape, std::uint32_t seed) {
  Stream stream(seed);
  return filled(std::move(shape), [&] { return std::floor(stream.uniform() * 9) - 4; });
}

Array normal(Shape shape, std::uint32_t seed, double deviation) {
  Stream stream(seed);
  return filled(std::move(shape), [&] {
    const double radius = std::sqrt(-2 * std::log(1 - stream.uniform()));
    return deviation * radius * std::cos(2 * std::numbers::pi * stream.uniform());
  });
}

Array uniform(Shape shape, std::uint32_t seed, double low, double high) {
  Stream stream(seed);
  return filled(std::move(shape), [&] { return low + (high - low) * stream.uniform(); });
}

Value operand(Graph& graph, std::size_t index, const Tensor& value) {
  return graph.variable(
      std::make_shared<Variable>(Variable{fmt::format("input{}", index), value.spec(), {}, false, value}));
}

std::vector<Tensor> run(const DevicePtr& device, const std::vector<Input>& inputs, const Build& build,
                        const CompileOptions& options) {
  Graph graph;
  std::vector<Value> values;
  for (std::size_t i = 0; i < inputs.size(); ++i) values.push_back(operand(graph, i, to_tensor(inputs[i])));
  const std::vector<Value> outputs = build(values);
  const auto program =
      std::make_shared<Program>(compile(graph, outputs, std::make_shared<Variables>(device, 7), options));
  keep(program);
  program->run();
  std::vector<Tensor> results;
  for (const Value& output : outputs) results.push_back(program->read(output));
  return results;
}

std::string shape_error(const std::vector<TensorSpec>& inputs, const Build& build) {
  Graph graph;
  std::vector<Value> values;
  for (std::size_t i = 0; i < inputs.size(); ++i) values.push_back(graph.input(fmt::format("input{}", i), inputs[i]));
  try {
    build(values);
  } catch (const ShapeError& error) {
    return error.what();
  }
  FAIL_CHECK("no ShapeError");
  return {};
}

Array to_array(const Tensor& tensor) {
  Array array(tensor.shape());
  const auto copy = [&](auto values) {
    std::ranges::transform(values, array.values.begin(), [](auto v) { return static_cast<double>(v); });
  };
  switch (tensor.dtype()) {
    case DType::f32: copy(tensor.values<float>()); break;
    case DType::i32: copy(tensor.values<std::int32_t>()); break;
    case DType::u8: copy(tensor.values<std::uint8_t>()); break;
    default: throw NotSupported("test outputs are f32, i32 or u8");
  }
  return array;
}

std::string difference(const Tensor& got, const Tensor& expected) {
  if (got.dtype() != expected.dtype()) return "types differ";
  return compare(to_array(got), to_array(expected), [](std::size_t) { return 0.0; });
}

void check(const Case& test) {
  INFO("case " << test.name);
  std::vector<Array> inputs;
  for (const Input& input : test.inputs) inputs.push_back(input.value);
  const std::vector<Input> all = test.gradient ? with_seeds(test, test.reference(inputs)) : test.inputs;
  std::vector<Array> seeds;
  for (std::size_t i = inputs.size(); i < all.size(); ++i) seeds.push_back(all[i].value);
  const Expected expected = expectation(test, inputs, seeds);

  std::vector<Tensor> first;
  for (const DevicePtr& device : devices()) {
    INFO("device " << device->info().id << ": " << device->info().name);
    const std::vector<Tensor> results = run(device, all, with_gradient(test));
    const std::size_t outputs = expected.outputs.size();
    REQUIRE(results.size() == outputs + expected.gradients.size());
    for (std::size_t k = 0; k < outputs; ++k) {
      INFO("output " << k);
      CHECK(compare_output(test, expected, k, to_array(results[k])) == "");
    }
    for (std::size_t g = 0; g < expected.gradients.size(); ++g) {
      INFO("gradient of f32 input " << g);
      CHECK(compare_gradient(test, expected, g, to_array(results[outputs + g])) == "");
    }
    if (first.empty()) first = results;
    for (std::size_t r = 0; test.scale == Scale::exact && r < results.size(); ++r) {
      INFO("result " << r << " against " << devices().front()->info().id);
      CHECK(difference(results[r], first[r]) == "");
    }
  }
}

}  // namespace concord::test
