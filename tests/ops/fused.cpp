// Operators with a pointwise epilogue: the same numbers as unfused, one description.
#include "concord/ops/fused.hpp"

#include <fmt/format.h>

#include <cmath>

#include "concord/ops/matmul.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/pool.hpp"
#include "ops/op_test.hpp"

namespace concord::test {
namespace {

/// The graph compiled with and without fusion gives equal numbers.
void check_fusion(const std::string& name, const std::vector<Input>& inputs, const Build& build) {
  for (const DevicePtr& device : devices()) {
    INFO(name << " on " << device->info().id);
    const std::vector<Tensor> plain = run(device, inputs, build, {.fuse = false});
    const std::vector<Tensor> fused = run(device, inputs, build, {.fuse = true});
    CHECK(difference(fused[0], plain[0]) == "");
  }
}

Input whole(const Shape& shape, std::uint32_t seed) { return {integers(shape, seed)}; }

TEST_CASE("a bias, an activation and a residual fuse without changing the result", "[ops][fused]") {
  check_fusion(
      "matmul", {whole({5, 7}, 1), whole({3, 7}, 2), whole({3}, 3), whole({5, 3}, 4)},
      [](const std::vector<Value>& x) { return std::vector{relu(matmul(x[0], x[1], false, true) + x[2]) + x[3]}; });
  check_fusion("batched matmul", {whole({2, 5, 7}, 1), whole({2, 7, 3}, 2), whole({2, 1, 3}, 3)},
               [](const std::vector<Value>& x) { return std::vector{leaky_relu(matmul(x[0], x[1]) + x[2], 0.5F)}; });
  check_fusion("conv2d", {whole({2, 3, 6, 5}, 1), whole({4, 3, 3, 3}, 2), whole({4, 1, 1}, 3), whole({2, 4, 6, 5}, 4)},
               [](const std::vector<Value>& x) {
                 return std::vector{relu(conv2d(x[0], x[1], {.padding = {1, 1}}) + x[2]) + x[3]};
               });
  check_fusion(
      "depthwise conv2d", {whole({2, 4, 6, 5}, 1), whole({4, 1, 3, 3}, 2), whole({1, 4, 1, 1}, 3)},
      [](const std::vector<Value>& x) { return std::vector{clamp(conv2d(x[0], x[1], {.groups = 4}) * x[2], 0, 6)}; });
  check_fusion("reduction", {whole({4, 6}, 1), whole({4, 1}, 2)},
               [](const std::vector<Value>& x) { return std::vector{relu(sum(x[0], {1}, true) - x[1])}; });
}

TEST_CASE("formulas behind the gradients of pools fuse without changing the result", "[ops][fused][pool]") {
  // Windows apart, with a rest and without; overlapping ones with padding; signals and volumes.
  struct Window {
    Shape src;
    ops::PoolOptions options;
  };
  const std::vector<Window> windows = {
      {{2, 3, 8, 6}, MaxPool2dOptions{.kernel = {2, 2}}},
      {{2, 3, 7, 9}, MaxPool2dOptions{.kernel = {2, 2}}},
      {{2, 3, 7, 9}, MaxPool2dOptions{.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}}},
      {{3, 2, 11}, MaxPool1dOptions{.kernel = 3, .stride = 2}},
      {{2, 2, 5, 4, 6}, MaxPool3dOptions{.kernel = {2, 2, 2}, .stride = {1, 2, 2}}},
  };
  for (const auto& [src, options] : windows) {
    for (const bool is_max : {true, false}) {
      // The slope of the activation, another gradient, a factor and a single number.
      check_fusion(fmt::format("{} of {}", is_max ? "max_pool" : "avg_pool", options.str()),
                   {whole(src, 1), whole(src, 2), whole(src, 3), whole({1}, 4)}, [&](const std::vector<Value>& x) {
                     const Value y = relu(x[0]);
                     const Value pooled = is_max ? max_pool(y, options) : avg_pool(y, options);
                     const Value slope = gradient(sum(pooled * pooled) + sum(x[0] * x[1]), std::vector{x[0]})[0];
                     return std::vector{slope * x[2] + x[3]};
                   });
    }
  }
}

TEST_CASE("a fused operator describes both parts", "[ops][fused]") {
  const auto base = std::make_shared<ops::Matmul>(false, false);
  const Expression bias({scalar::input(0) + scalar::input(1)}, 2);
  const ops::Fused fused(base, 2, bias, "matmul+add");
  const std::vector<TensorSpec> inputs = {{DType::f32, {2, 3}}, {DType::f32, {3, 4}}, {DType::f32, {4}}};
  const std::vector<TensorSpec> outputs = fused.infer(inputs);
  CHECK(outputs == std::vector<TensorSpec>{{DType::f32, {2, 4}}});
  const Cost cost = fused.cost(inputs, outputs);
  CHECK(cost.flops == 2 * 2 * 3 * 4 + 8);
  CHECK(cost.bytes == 4 * (6 + 12 + 4 + 8));
  CHECK(fused.attributes() !=
        ops::Fused(base, 2, Expression({scalar::input(0) - scalar::input(1)}, 2), "x").attributes());
  CHECK_THROWS_AS(fused.infer(std::vector<TensorSpec>{inputs[0], inputs[1], {DType::f32, {3}}}), ShapeError);
}

}  // namespace
}  // namespace concord::test
