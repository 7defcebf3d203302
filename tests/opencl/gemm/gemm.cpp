// Every implementation of a product, and both ways to a convolution, give the same whole numbers.
#include "concord/opencl/gemm/gemm.hpp"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cmath>

#include "concord/core/log.hpp"
#include "concord/opencl/conv/conv.hpp"
#include "concord/opencl/gemm/implementation.hpp"
#include "concord/opencl/gemm/matrix_check.hpp"
#include "opencl/context_of.hpp"
#include "opencl/opencl_test.hpp"
#include "ops/op_test.hpp"

namespace concord::test {
namespace {

/// Runs the graph with every implementation and compares with the reference one.
void check_implementations(const std::string& name, const std::vector<Input>& inputs, const Build& build) {
  for (const DevicePtr& device : opencl_devices()) {
    std::vector<Tensor> expected;
    {
      const DebugOption setting("gemm", "reference");
      expected = run(device, inputs, build);
    }
    for (const opencl::GemmImplementation* one : opencl::gemm_implementations()) {
      INFO(name << " by " << one->name << " on " << device->info().id);
      const DebugOption setting("gemm", std::string(one->name));
      const std::vector<Tensor> results = run(device, inputs, build);
      for (std::size_t i = 0; i < results.size(); ++i) CHECK(difference(results[i], expected[i]) == "");
    }
  }
}

Tensor product_on(const DevicePtr& device, const Tensor& a, const Tensor& b, bool transpose_b = false) {
  Graph graph;
  const Value c = matmul(graph.input("a", a.spec()), graph.input("b", b.spec()), false, transpose_b);
  Program program = compile(graph, std::vector{c}, std::make_shared<Variables>(device, 1));
  program.write("a", a);
  program.write("b", b);
  program.run();
  return program.read(c);
}

Tensor turned(const Tensor& matrix) {
  const std::int64_t rows = matrix.shape()[0], columns = matrix.shape()[1];
  Tensor result(DType::f32, {columns, rows});
  for (std::int64_t i = 0; i < matrix.elements(); ++i) {
    result.values<float>()[static_cast<std::size_t>(i % columns * rows + i / columns)] =
        matrix.values<float>()[static_cast<std::size_t>(i)];
  }
  return result;
}

Shape transposed(const Shape& shape, bool transpose) { return transpose ? Shape{shape[1], shape[0]} : shape; }

struct Geometry {
  Shape src, weights;
  Conv2dOptions options;
};
const std::vector<Geometry> kGeometries = {
    {{2, 3, 9, 7}, {5, 3, 3, 3}, {{1, 1}, {1, 1}, {1, 1}, 1}},
    {{3, 4, 8, 11}, {6, 2, 3, 2}, {{2, 2}, {1, 0}, {1, 1}, 2}},
    {{1, 6, 10, 9}, {6, 1, 3, 3}, {{1, 2}, {2, 2}, {2, 2}, 6}},
    {{2, 8, 5, 5}, {9, 8, 1, 1}, {{3, 2}, {0, 0}, {1, 1}, 1}},
    {{2, 2, 6, 20}, {33, 2, 5, 5}, {{1, 1}, {4, 4}, {1, 1}, 1}},
};

std::vector<Value> training_of_conv(const std::vector<Value>& x, const Conv2dOptions& options) {
  const Value dst = relu(conv2d(x[0], x[1], options) + x[2]);
  std::vector<Value> results{dst};
  const std::vector<Value> gradients = gradient(sum(dst), std::vector{x[0], x[1]});
  results.insert(results.end(), gradients.begin(), gradients.end());
  return results;
}

}  // namespace

TEST_CASE("every implementation of a product gives the same numbers", "[opencl][gemm]") {
  struct Sizes {
    std::int64_t m, n, k;
  };
  // Edges of every tile; k beyond a panel's depth, and so long that it is cut.
  for (const Sizes s : {Sizes{1, 1, 1}, Sizes{9, 33, 5}, Sizes{65, 40, 300}, Sizes{3, 10, 2000}}) {
    for (const bool a : {false, true}) {
      for (const bool b : {false, true}) {
        check_implementations(
            fmt::format("{}x{}x{}{}{}", s.m, s.n, s.k, a ? " a transposed" : "", b ? " b transposed" : ""),
            {{integers(transposed({s.m, s.k}, a), 1)}, {integers(transposed({s.k, s.n}, b), 2)}},
            [=](const std::vector<Value>& x) { return std::vector{matmul(x[0], x[1], a, b)}; });
      }
    }
  }
  check_implementations("batches", {{integers({3, 9, 20}, 1)}, {integers({3, 20, 7}, 2)}},
                        [](const std::vector<Value>& x) { return std::vector{matmul(x[0], x[1])}; });
}

TEST_CASE("every implementation of a product applies an epilogue", "[opencl][gemm]") {
  for (const std::int64_t k : {21, 700}) {
    check_implementations(
        "bias and residual",
        {{integers({2, 19, k}, 1)}, {integers({k, 35}, 2)}, {integers({35}, 3)}, {integers({2, 19, 35}, 4)}},
        [](const std::vector<Value>& x) { return std::vector{relu(matmul(x[0], x[1]) + x[2]) + x[3]}; });
    check_implementations(
        "a column and a matrix for every batch",
        {{integers({3, k, 11}, 1)}, {integers({3, k, 18}, 2)}, {integers({11, 1}, 3)}, {integers({11, 18}, 4)}},
        [](const std::vector<Value>& x) { return std::vector{(matmul(x[0], x[1], true) + x[2]) * x[3]}; });
  }
}

TEST_CASE("every implementation of a product has 64-bit indices where an operand is large", "[opencl][gemm]") {
  constexpr std::int64_t kRows = 9, kColumns = 33;
  for (const std::int64_t k : {5, 2000}) {
    const std::vector<float> a = opencl::whole_numbers(kRows * k, 5), b = opencl::whole_numbers(k * kColumns, 11);
    std::vector<float> expected;
    for (std::int64_t i = 0; i < kRows * kColumns; ++i) {
      float sum = 0;
      for (std::int64_t j = 0; j < k; ++j) {
        sum += a[static_cast<std::size_t>(i / kColumns * k + j)] *
               b[static_cast<std::size_t>(j * kColumns + i % kColumns)];
      }
      expected.push_back(sum);
    }
    opencl::Gemm gemm = opencl::dense_gemm(kRows, kColumns, k);
    gemm.largest = std::int64_t{1} << 31;
    for (const DevicePtr& device : opencl_devices()) {
      opencl::Context& context = context_of(device);
      for (const opencl::GemmImplementation* one : opencl::gemm_implementations()) {
        if (!one->refusal(context, gemm).empty() || !one->device_refusal(context, gemm.precision).empty()) continue;
        INFO(one->name << " on " << device->info().id << ", k = " << k);
        const auto kernel = one->prepare(context, gemm, "test");
        const std::array buffers{device->allocate(a.size() * sizeof(float)), device->allocate(b.size() * sizeof(float)),
                                 device->allocate(expected.size() * sizeof(float)),
                                 device->allocate(std::max<std::size_t>(kernel->workspace(), 4))};
        device->write(*buffers[0], 0, std::as_bytes(std::span(a)));
        device->write(*buffers[1], 0, std::as_bytes(std::span(b)));
        const std::array<Operand, 2> inputs{{{buffers[0].get(), 0}, {buffers[1].get(), 0}}};
        const Operand output{buffers[2].get(), 0};
        kernel->bind(inputs, {&output, 1}, {buffers[3].get(), 0})->enqueue();
        std::vector<float> result(expected.size());
        device->read(*buffers[2], 0, std::as_writable_bytes(std::span(result)));
        CHECK(result == expected);
      }
    }
  }
}

TEST_CASE("every implementation of a product serves the passes of a convolution", "[opencl][gemm]") {
  const DebugOption product("conv", "gemm");
  for (const Geometry& g : kGeometries) {
    check_implementations(fmt::format("{} * {} {}", g.src.str(), g.weights.str(), g.options.str()),
                          {{integers(g.src, 1)}, {integers(g.weights, 2)}, {integers({g.weights[0], 1, 1}, 3)}},
                          [&](const std::vector<Value>& x) { return training_of_conv(x, g.options); });
  }
}

TEST_CASE("every implementation of a product serves the passes of a convolution of volumes", "[opencl][gemm]") {
  const Conv3dOptions apart{.stride = {2, 1, 2}, .padding = {1, 0, 1}, .groups = 2};
  for (const Conv3dOptions& options : {apart, Conv3dOptions{.padding = {1, 1, 1}, .groups = 2}}) {
    check_implementations(options.str(), {{integers({2, 4, 4, 5, 18}, 1)}, {integers({6, 2, 3, 2, 3}, 2)}},
                          [&](const std::vector<Value>& x) {
                            const Value dst = conv3d(x[0], x[1], options);
                            std::vector<Value> results = gradient(sum(dst * dst), x);
                            results.push_back(dst);
                            return results;
                          });
  }
}

TEST_CASE("im2col, the implicit product and the direct kernels agree", "[opencl][gemm]") {
  for (const Geometry& g : kGeometries) {
    const std::vector<Input> inputs{
        {integers(g.src, 1)}, {integers(g.weights, 2)}, {integers({g.weights[0], 1, 1}, 3)}};
    const Build build = [&](const std::vector<Value>& x) {
      const Value dst = conv2d(x[0], x[1], g.options);
      std::vector<Value> results = gradient(sum(dst * dst), std::vector{x[0], x[1]});
      results.push_back(dst);
      results.push_back(relu(conv2d(x[0], x[1], g.options) + x[2]));
      return results;
    };
    for (const DevicePtr& device : opencl_devices()) {
      INFO(g.src.str() << " * " << g.weights.str() << " " << g.options.str() << " on " << device->info().id);
      const std::vector<Tensor> results = run(device, inputs, build);
      for (const char* way : {"gemm", "im2col"}) {
        const DebugOption setting("conv", way);
        const std::vector<Tensor> expected = run(device, inputs, build);
        for (std::size_t i = 0; i < results.size(); ++i) CHECK(difference(results[i], expected[i]) == "");
      }
    }
  }
}

TEST_CASE("every implementation of a product is as exact as single precision at any magnitude", "[opencl][gemm]") {
  constexpr std::int64_t kRows = 130, kColumns = 136, kDepth = 301;  // rows that are not aligned
  // Of row m and column k of A; of row k and column n of B.
  struct Magnitude {
    const char* name;
    int (*of_a)(std::int64_t m, std::int64_t k);
    int (*of_b)(std::int64_t k, std::int64_t n);
  };
  const std::vector<Magnitude> magnitudes{
      {"ordinary", [](std::int64_t, std::int64_t) { return 0; }, [](std::int64_t, std::int64_t) { return 0; }},
      {"small", [](std::int64_t, std::int64_t) { return -50; }, [](std::int64_t, std::int64_t) { return -50; }},
      {"large", [](std::int64_t, std::int64_t) { return 55; }, [](std::int64_t, std::int64_t) { return 55; }},
      {"small by large", [](std::int64_t, std::int64_t) { return -100; },
       [](std::int64_t, std::int64_t) { return 95; }},
      {"mixed", [](std::int64_t m, std::int64_t k) { return static_cast<int>((m * kDepth + k) * 7 % 61) - 30; },
       [](std::int64_t k, std::int64_t n) { return static_cast<int>((k * kColumns + n) * 7 % 61) - 30; }},
      {"rows apart", [](std::int64_t m, std::int64_t) { return static_cast<int>(m % 3) * -25; },
       [](std::int64_t, std::int64_t) { return 0; }},
      {"columns apart", [](std::int64_t, std::int64_t) { return 0; },
       [](std::int64_t, std::int64_t n) { return static_cast<int>(n % 3) * 20; }},
      {"small where the other is large", [](std::int64_t, std::int64_t k) { return k % 50 == 0 ? 20 : -20; },
       [](std::int64_t k, std::int64_t) { return k % 50 == 0 ? -20 : 20; }},
      {"a tiny one", [](std::int64_t m, std::int64_t k) { return m == 3 && k == 7 ? -40 : 0; },
       [](std::int64_t, std::int64_t) { return 0; }},
      {"a tiny one where the other is large", [](std::int64_t m, std::int64_t k) { return m == 3 && k == 7 ? -40 : 0; },
       [](std::int64_t k, std::int64_t n) { return k == 7 || n % 2 == 0 ? 0 : -45; }}};
  for (const Magnitude& magnitude : magnitudes) {
    Tensor a(DType::f32, {kRows, kDepth}), b(DType::f32, {kDepth, kColumns});
    const auto fill = [](Tensor& tensor, int (*exponent)(std::int64_t, std::int64_t), std::int64_t first) {
      const std::int64_t columns = tensor.shape()[1];
      for (std::int64_t i = 0; i < tensor.elements(); ++i) {
        tensor.values<float>()[static_cast<std::size_t>(i)] =
            std::ldexp(std::sin(static_cast<float>(first + i) * 1.37F), exponent(i / columns, i % columns));
      }
    };
    fill(a, magnitude.of_a, 0);
    fill(b, magnitude.of_b, a.elements());
    for (const DevicePtr& device : opencl_devices()) {
      for (const opencl::GemmImplementation* one : opencl::gemm_implementations()) {
        INFO(magnitude.name << " by " << one->name << " on " << device->info().id);
        const DebugOption setting("gemm", std::string(one->name));
        CHECK(error_of_product(a, b, product_on(device, a, b)) < 8 * 0x1p-24);
        CHECK(error_of_product(a, b, product_on(device, a, turned(b), true)) < 8 * 0x1p-24);
      }
    }
  }
}

TEST_CASE("every implementation of a product keeps what is not finite", "[opencl][gemm]") {
  Tensor a(DType::f32, {130, 40}), b(DType::f32, {40, 136});
  for (float& x : a.values<float>()) x = 1;
  for (float& x : b.values<float>()) x = 1;
  a.values<float>()[3 * 40 + 7] = INFINITY;
  a.values<float>()[5 * 40 + 1] = std::bit_cast<float>(0x7fffffffU);  // a NaN of all ones
  a.values<float>()[64 * 40] = -INFINITY;
  for (const DevicePtr& device : opencl_devices()) {
    for (const opencl::GemmImplementation* one : opencl::gemm_implementations()) {
      INFO(one->name << " on " << device->info().id);
      const DebugOption setting("gemm", std::string(one->name));
      const Tensor c = product_on(device, a, b);
      const auto at = [&](std::size_t m, std::size_t n) { return c.values<float>()[m * 136 + n]; };
      for (const std::size_t n : {0U, 77U, 135U}) {
        CHECK(at(3, n) == INFINITY);
        CHECK(std::isnan(at(5, n)));
        CHECK(at(64, n) == -INFINITY);
        CHECK(at(4, n) == 40);
        CHECK(at(129, n) == 40);
      }
    }
  }
}

TEST_CASE("the log says why an implementation of a product was not taken", "[opencl][gemm]") {
  for (const DevicePtr& device : opencl_devices()) {
    INFO(device->info().id);
    opencl::Context& context = context_of(device);
    std::string said;
    set_log([&](LogLevel, std::string_view message) { said += std::string(message) + "\n"; }, LogLevel::debug);
    opencl::Gemm small = opencl::dense_gemm(4, 64, 64);
    static_cast<void>(opencl::planned_implementation(context, small));
    small.partial = true;
    static_cast<void>(opencl::planned_implementation(context, small));
    set_log({});
    CHECK_THAT(said,
               contains("4 x 64 x 64 matrix multiplication in fp32 by \"") && contains("; not by \"reference\": "));
    const bool has_units = context.capability().has_matrix_cores();
    CHECK_THAT(said,
               contains(has_units ? "; not by \"mma\": a size is too small" : "; not by \"mma\": not for this device"));
  }
}

}  // namespace concord::test
