// Layouts of the CPU backend: which are the same as row-major, and that every operator keeps its meaning when its
// images come channels-last.
#include "../../cpu/layout.hpp"

#include "concord/ops/conv.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/normalise.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/pool.hpp"
#include "concord/ops/reduce.hpp"
#include "run_kernel.hpp"

namespace concord::test {
namespace {

// The largest difference of all outputs between row-major and channels-last images.
double deviation(const Operator& op, const std::vector<Tensor>& inputs) {
  const KernelRun plain = run_kernel(op, inputs, false), last = run_kernel(op, inputs, true);
  double largest = 0;
  for (std::size_t k = 0; k < plain.outputs.size(); ++k) {
    if (plain.outputs[k].dtype() == DType::i32) {
      const auto a = plain.outputs[k].values<std::int32_t>(), b = last.outputs[k].values<std::int32_t>();
      for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, a[i] == b[i] ? 0.0 : 1.0);
    } else {
      const auto a = plain.outputs[k].values<float>(), b = last.outputs[k].values<float>();
      for (std::size_t i = 0; i < a.size(); ++i)
        largest = std::max(largest, static_cast<double>(std::abs(a[i] - b[i])));
    }
  }
  return largest;
}

const Shape kImages{3, 5, 9, 8};

}  // namespace

TEST_CASE("channels-last is row-major when there is one channel or one pixel", "[cpu]") {
  CHECK(cpu::channels_last({DType::f32, Shape{2, 1, 4, 4}}) == nullptr);
  CHECK(cpu::channels_last({DType::f32, Shape{2, 7, 1, 1}}) == nullptr);
  const TensorSpec spec{DType::f32, Shape{2, 3, 4, 4}};
  const Layout last = cpu::channels_last(spec);
  REQUIRE(last != nullptr);
  CHECK(last->str() == "nhwc");
  CHECK(last->bytes() == spec.bytes());
  CHECK(cpu::is_channels_last(spec, last));
  CHECK_FALSE(cpu::is_channels_last(spec, nullptr));
  CHECK(same_layout(last, cpu::channels_last(spec)));
  CHECK(cpu::strides_in(spec, last) == std::vector<std::int64_t>{48, 1, 12, 3});
}

TEST_CASE("moving values between layouts changes none of them", "[cpu]") {
  const Tensor x = normal_tensor(kImages, 1);
  CHECK(deviation(ops::Slice({0, 0, 0, 0}, {1, 1, 1, 1}, kImages), {x}) == 0);
  CHECK(deviation(ops::Slice({1, 0, 2, 1}, {1, 2, 3, 1}, Shape{2, 3, 2, 5}), {x}) == 0);
  CHECK(deviation(ops::Pad({1, 0, 2, 0}, {1, 1, 2, 1}, Shape{5, 5, 20, 9}, 0.5F), {x}) == 0);
  CHECK(deviation(ops::Transpose({0, 2, 3, 1}), {x}) == 0);
  for (std::size_t axis = 0; axis < 4; ++axis) CHECK(deviation(ops::Concat(axis), {x, x}) == 0);
}

TEST_CASE("operators mean the same on channels-last images", "[cpu]") {
  const Tensor x = normal_tensor(kImages, 1), weights = normal_tensor(Shape{4, 5, 3, 3}, 2);
  const Tensor channels = normal_tensor(Shape{5}, 3), per_channel = normal_tensor(Shape{5, 1, 1}, 4);
  CHECK(deviation(ops::Conv(ops::ConvOptions{}), {x, weights}) < 1e-5);
  CHECK(deviation(ops::BatchNorm(1e-5F), {x, channels, channels}) < 1e-5);
  const MaxPool2dOptions pool{.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}};
  CHECK(deviation(ops::MaxPool(pool), {x}) == 0);
  CHECK(deviation(ops::AvgPool(pool), {x}) < 1e-6);
  const ops::PoolOptions parts{.adaptive = {1, 4, 3}};
  CHECK(deviation(ops::MaxPool(parts), {x}) == 0);
  CHECK(deviation(ops::AvgPool(parts), {x}) < 1e-6);
  CHECK(deviation(ops::Reduce(ops::ReduceKind::sum, {0, 2, 3}), {x}) < 1e-4);
  CHECK(deviation(ops::Reduce(ops::ReduceKind::maximum, {1}), {x}) == 0);
  CHECK(deviation(ops::Reduce(ops::ReduceKind::argmax, {1}), {x}) == 0);
  const Scalar a = scalar::input(0), b = scalar::input(1);
  const Expression expression({a * b + scalar::coordinate(2), scalar::max(a, b)}, 2);
  CHECK(deviation(ops::Pointwise(expression, {DType::f32, DType::f32}, "test"), {x, per_channel}) == 0);
}

TEST_CASE("operators mean the same on channels-last signals and volumes", "[cpu]") {
  const Tensor channels = normal_tensor(Shape{5}, 3);
  const Scalar a = scalar::input(0);
  const Expression twice({a + a}, 1);
  for (const Shape& shape : {Shape{3, 5, 9}, Shape{2, 5, 3, 4, 6}}) {
    const Tensor x = normal_tensor(shape, 1);
    const std::size_t rank = shape.rank() - 2;
    const Tensor weights = rank == 1 ? normal_tensor(Shape{4, 5, 3}, 2) : normal_tensor(Shape{4, 5, 2, 3, 2}, 2);
    CHECK(deviation(ops::Conv(ops::ConvOptions{.rank = rank}), {x, weights}) < 1e-5);
    CHECK(deviation(ops::BatchNorm(1e-5F), {x, channels, channels}) < 1e-5);
    const ops::PoolOptions pool{.rank = rank, .kernel = {rank == 1 ? 1 : 2, rank == 1 ? 1 : 2, 3}};
    CHECK(deviation(ops::MaxPool(pool), {x}) == 0);
    CHECK(deviation(ops::AvgPool(pool), {x}) < 1e-6);
    CHECK(deviation(ops::Reduce(ops::ReduceKind::sum, {0, 2}), {x}) < 1e-4);
    CHECK(deviation(ops::Pointwise(twice, {DType::f32}, "test"), {x}) == 0);
  }
}

TEST_CASE("image operators hand on the layout they are given", "[cpu]") {
  const Tensor x = normal_tensor(kImages, 1);
  const Expression expression({scalar::max(scalar::input(0), 0.0F)}, 1);
  CHECK(run_kernel(ops::Pointwise(expression, {DType::f32}, "relu"), {x}, true).output_layouts[0] == "nhwc");
  CHECK(run_kernel(ops::Pointwise(expression, {DType::f32}, "relu"), {x}, false).output_layouts[0].empty());
  CHECK(run_kernel(ops::MaxPool(MaxPool2dOptions{}), {x}, true).output_layouts ==
        std::vector<std::string>{"nhwc", "nhwc"});
  CHECK(run_kernel(ops::BatchNorm(1e-5F), {x, normal_tensor(Shape{5}, 2), normal_tensor(Shape{5}, 3)}, true)
            .output_layouts[0] == "nhwc");
}

}  // namespace concord::test
