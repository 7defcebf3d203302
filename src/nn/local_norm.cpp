// Local response normalisation by average pooling of squares, local contrast normalisation by Gaussian blurring.
#include "concord/nn/local_norm.hpp"

#include "concord/core/check.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/pool.hpp"
#include "concord/ops/reduce.hpp"
#include "concord/ops/resample.hpp"
#include "concord/ops/stop_gradient.hpp"

namespace concord::nn {
namespace {

/// The mean over `size` neighbouring channels, of which size/2 come before, with zeros outside.
Value mean_across(Value x, std::int64_t size) {
  const Shape& shape = x.shape();
  const Value images = reshape(x, {shape[0], 1, shape[1], -1});
  const Value padded = pad(images, {0, 0, size / 2, 0}, {0, 0, (size - 1) / 2, 0});
  return reshape(avg_pool2d(padded, {.kernel = {size, 1}, .stride = {1, 1}}), shape);
}

Value mean_within(Value x, std::int64_t size) {
  return avg_pool2d(x, {.kernel = {size, size}, .stride = {1, 1}, .padding = {size / 2, size / 2}});
}

}  // namespace

LocalResponseNorm::LocalResponseNorm(std::int64_t size, const LocalResponseNormOptions& options)
    : size_(size), options_(options) {
  const bool within = options.region == LocalResponseNormOptions::Region::within_channel;
  CONCORD_CHECK(size >= 1 && (!within || size % 2 == 1), ArgumentError,
                "LocalResponseNorm: the size must be positive, and odd within a channel; got {}", size);
}

Value LocalResponseNorm::forward(Value x) {
  const bool within = options_.region == LocalResponseNormOptions::Region::within_channel;
  const std::size_t rank = x.shape().rank();
  CONCORD_CHECK(within ? rank == 4 : rank >= 2, ShapeError, "{}: expected {}, got {}",
                x.graph().scoped("LocalResponseNorm", '/'),
                within ? "[batch, channels, rows, columns]" : "[batch, channels, …]", x.shape().str());
  const Value squares = square(x);
  const Value means = within ? mean_within(squares, size_) : mean_across(squares, size_);
  const Scalar base = options_.k + options_.alpha * scalar::input(1);
  return pointwise("local_response_norm", {x, means}, scalar::input(0) * scalar::power(base, -options_.beta));
}

LocalContrastNorm::LocalContrastNorm(const LocalContrastNormOptions& options) : options_(options) {
  CONCORD_CHECK(options.window >= 1 && options.window % 2 == 1 && options.deviation >= 0, ArgumentError,
                "LocalContrastNorm: the window must be odd and the deviation not negative, got {} and {}",
                options.window, options.deviation);
  if (options_.deviation == 0) options_.deviation = 0.25 * static_cast<double>(options.window);
}

Value LocalContrastNorm::forward(Value x) {
  CONCORD_CHECK(x.shape().rank() == 4, ShapeError, "{}: expected [batch, channels, rows, columns], got {}",
                x.graph().scoped("LocalContrastNorm", '/'), x.shape().str());
  const auto local_mean = [&](Value values) {
    return gaussian_blur(mean(values, {1}, true), options_.window, options_.deviation);
  };
  if (options_.subtractive) {
    // Around one of its numbers, which leaves the result as it is: the mean of an image far from 0 is rounded to its size.
    const Value near = stop_gradient(slice(slice(slice(x, 1, 0, 1), 2, 0, 1), 3, 0, 1));
    const Value moved = x - near;
    x = moved - local_mean(moved);
  }
  if (!options_.divisive) return x;
  // The root has no slope at 0; max takes the mean's there, since no mean of deviations is below 0.
  constexpr float kSmallest = 1e-20F;
  const Value deviation =
      pointwise("deviation", {local_mean(square(x))}, scalar::sqrt(scalar::max(scalar::input(0), kSmallest)));
  return x / maximum(deviation, mean(deviation, {2, 3}, true));
}

}  // namespace concord::nn
