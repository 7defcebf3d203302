// The functions of pooling as users call them: adaptive and global windows become fixed ones where they can, Lp pooling
// is made of the average.
#include <cmath>

#include "concord/core/check.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/pool.hpp"

namespace concord {
namespace {

void expect_images(const char* name, Value x) {
  CONCORD_CHECK(x.shape().rank() >= 3 && x.shape().rank() <= 5, ShapeError,
                "{}: expected (N, C, …) with 1 to 3 spatial dimensions, got {}", name, x.shape().str());
}

ops::PoolOptions adaptive(const char* name, Value x, std::span<const std::int64_t> sizes) {
  expect_images(name, x);
  ops::PoolOptions options{.rank = x.shape().rank() - 2};
  CONCORD_CHECK(sizes.size() == options.rank, ShapeError, "{}: {} sizes for the {} spatial dimensions of {}", name,
                sizes.size(), options.rank, x.shape().str());
  ops::Spatial dst{1, 1, 1};
  std::copy(sizes.begin(), sizes.end(), dst.end() - static_cast<std::ptrdiff_t>(sizes.size()));
  const ops::Spatial src = ops::spatial_of(x.shape());
  for (std::size_t i = 0; i < 3; ++i) {
    CONCORD_CHECK(dst[i] >= 1, ShapeError, "{}: sizes {} of {} must be at least 1", name, ops::str(dst, options.rank),
                  x.shape().str());
    // If the sizes divide those of the source, all windows are alike and adjacent.
    if (src[i] % dst[i] != 0) options.adaptive = dst;
    options.kernel[i] = options.stride[i] = src[i] / dst[i];
  }
  return options.is_adaptive() ? ops::PoolOptions{.rank = options.rank, .adaptive = dst} : options;
}

std::vector<std::int64_t> ones(const char* name, Value x) {
  expect_images(name, x);
  return std::vector<std::int64_t>(x.shape().rank() - 2, 1);
}

}  // namespace

MaxPooled max_pool_with_indices(Value x, const ops::PoolOptions& options) {
  const Value values = max_pool(x, options);
  return {values, Value(&x.graph(), values.node_id(), 1)};
}

Value max_pool(Value x, const ops::PoolOptions& options) {
  return x.graph().add(std::make_shared<ops::MaxPool>(options), {x});
}

Value avg_pool(Value x, const ops::PoolOptions& options) {
  return x.graph().add(std::make_shared<ops::AvgPool>(options), {x});
}

Value adaptive_max_pool(Value x, std::span<const std::int64_t> sizes) {
  return max_pool(x, adaptive("adaptive_max_pool", x, sizes));
}

MaxPooled adaptive_max_pool_with_indices(Value x, std::span<const std::int64_t> sizes) {
  return max_pool_with_indices(x, adaptive("adaptive_max_pool", x, sizes));
}

Value adaptive_avg_pool(Value x, std::span<const std::int64_t> sizes) {
  return avg_pool(x, adaptive("adaptive_avg_pool", x, sizes));
}

Value global_avg_pool(Value x) { return adaptive_avg_pool(x, ones("global_avg_pool", x)); }
Value global_max_pool(Value x) { return adaptive_max_pool(x, ones("global_max_pool", x)); }

Value global_avg_pool2d(Value x) {
  CONCORD_CHECK(x.shape().rank() == 4, ShapeError, "global_avg_pool2d: expected (N, C, H, W), got {}", x.shape().str());
  return global_avg_pool(x);
}

Value lp_pool(Value x, float p, const ops::PoolOptions& options) {
  CONCORD_CHECK(p > 0, ArgumentError, "lp_pool: the power must be positive, got {}", p);
  const auto pixels = static_cast<float>(options.kernel[0] * options.kernel[1] * options.kernel[2]);
  const Scalar value = scalar::input(0);
  // Small whole powers are products, which negative values have too.
  Scalar powered = value;
  if (p == std::floor(p) && p <= 8) {
    for (int i = 1; i < static_cast<int>(p); ++i) powered = powered * value;
  } else {
    powered = scalar::power(value, p);
  }
  const Value mean = avg_pool(p == 1 ? x : pointwise("power", {x}, powered), options);
  const Scalar sum = value * pixels;
  return pointwise("root", {mean}, p == 1 ? sum : p == 2 ? scalar::sqrt(sum) : scalar::power(sum, 1 / p));
}

Value max_unpool(Value x, Value indices, std::span<const std::int64_t> sizes) {
  expect_images("max_unpool", x);
  CONCORD_CHECK(sizes.size() + 2 == x.shape().rank(), ShapeError,
                "max_unpool: {} sizes for the {} spatial dimensions of {}", sizes.size(), x.shape().rank() - 2,
                x.shape().str());
  std::vector<std::int64_t> dims{x.shape()[0], x.shape()[1]};
  dims.insert(dims.end(), sizes.begin(), sizes.end());
  return x.graph().add(std::make_shared<ops::MaxUnpool>(Shape(std::move(dims))), {x, indices});
}

}  // namespace concord
