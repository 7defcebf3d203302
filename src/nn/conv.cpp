// Convolution layers: the convolution and its bias.
#include "concord/nn/conv.hpp"

#include <fmt/ranges.h>

#include "concord/core/check.hpp"
#include "concord/nn/init.hpp"
#include "concord/ops/conv.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/pointwise.hpp"

namespace concord::nn {
namespace {

template <std::size_t Rank>
void expect_layer(const char* name, std::int64_t in, std::int64_t out, std::int64_t groups,
                  const Extent<Rank>& kernel) {
  CONCORD_CHECK(in > 0 && out > 0 && std::ranges::all_of(kernel.sizes(), [](std::int64_t k) { return k > 0; }),
                ArgumentError, "{}{}d: channels and kernel must be positive, got {} → {}, {}", name, Rank, in, out,
                fmt::join(kernel.sizes(), "x"));
  CONCORD_CHECK(groups > 0 && in % groups == 0 && out % groups == 0, ArgumentError,
                "{}{}d: {} groups do not divide {} and {} channels", name, Rank, groups, in, out);
}

template <std::size_t Rank>
Shape weight_shape(std::int64_t first, std::int64_t second, const Extent<Rank>& kernel) {
  std::vector<std::int64_t> dims{first, second};
  dims.insert(dims.end(), kernel.sizes().begin(), kernel.sizes().end());
  return Shape(std::move(dims));
}

template <std::size_t Rank>
void expect_source(Value x, const char* op, std::int64_t channels) {
  CONCORD_CHECK(x.shape().rank() == Rank + 2 && x.shape()[1] == channels, ShapeError, "{}: expected {}, got {}",
                x.graph().scoped(fmt::format("{}{}d", op, Rank), '/'),
                ops::spatial_form(fmt::format("N, {}", channels), "", Rank), x.shape().str());
}

Value with_bias(Value x, Value bias) {
  std::vector<std::int64_t> dims(x.shape().rank() - 1, 1);
  dims[0] = bias.shape()[0];
  return x + reshape(bias, Shape(std::move(dims)));
}

/// (0, 0, sizes…): nothing along images and channels.
template <std::size_t Rank>
std::vector<std::int64_t> around(const std::array<std::int64_t, Rank>& sizes) {
  std::vector<std::int64_t> all(2, 0);
  all.insert(all.end(), sizes.begin(), sizes.end());
  return all;
}

template <std::size_t Rank>
Value convolved_back(Value x, Value weight, const ConvTransposeNdOptions<Rank>& options) {
  if constexpr (Rank == 1) return conv_transpose1d(x, weight, options);
  if constexpr (Rank == 2) return conv_transpose2d(x, weight, options);
  if constexpr (Rank == 3) return conv_transpose3d(x, weight, options);
}

}  // namespace

template <std::size_t Rank>
Conv<Rank>::Conv(std::int64_t in, std::int64_t out, Extent<Rank> kernel, const Options& options)
    : in_(in), kernel_(kernel), options_(options) {
  expect_layer("Conv", in, out, options.groups, kernel);
  CONCORD_CHECK(
      !options.padding.is_same() || std::ranges::all_of(options.stride.sizes(), [](std::int64_t s) { return s == 1; }),
      ArgumentError, "Conv{}d: padding that keeps the size needs stride 1, got {}", Rank,
      fmt::join(options.stride.sizes(), "x"));
  const Shape shape = weight_shape(out, in / options.groups, kernel);
  weight_ = make_parameter(shape, init::default_weights(shape));
  if (options.bias) bias_ = make_parameter(Shape{out}, init::default_bias(shape));
}

template <std::size_t Rank>
Value Conv<Rank>::forward(Value x) {
  expect_source<Rank>(x, "conv", in_);
  Graph& graph = x.graph();
  ConvNdOptions<Rank> options{.stride = options_.stride,
                              .padding = options_.padding.before(kernel_, options_.dilation),
                              .dilation = options_.dilation,
                              .groups = options_.groups,
                              .padding_after = options_.padding.after(kernel_, options_.dilation)};
  if (options_.padding_mode != PadMode::constant) {
    x = pad(x, options_.padding_mode, around(options.padding), around(*options.padding_after));
    options.padding.fill(0);
    options.padding_after.reset();
  }
  const Value weight = parameter(graph, weight_, "weight");
  const Value product =
      graph.add(std::make_shared<ops::Conv>(options), {x, options_.mirror ? mirror_kernel(weight) : weight});
  return bias_ ? with_bias(product, parameter(graph, bias_, "bias")) : product;
}

template <std::size_t Rank>
ConvTranspose<Rank>::ConvTranspose(std::int64_t in, std::int64_t out, Extent<Rank> kernel, const Options& options)
    : in_(in), options_(options) {
  expect_layer("ConvTranspose", in, out, options.groups, kernel);
  const Shape shape = weight_shape(in, out / options.groups, kernel);
  weight_ = make_parameter(shape, init::default_weights(shape));
  if (options.bias) bias_ = make_parameter(Shape{out}, init::default_bias(shape));
}

template <std::size_t Rank>
Value ConvTranspose<Rank>::forward(Value x) {
  expect_source<Rank>(x, "conv_transpose", in_);
  Graph& graph = x.graph();
  const ConvTransposeNdOptions<Rank> options{.stride = options_.stride,
                                             .padding = options_.padding,
                                             .output_padding = options_.output_padding,
                                             .dilation = options_.dilation,
                                             .groups = options_.groups};
  const Value product = convolved_back<Rank>(x, parameter(graph, weight_, "weight"), options);
  return bias_ ? with_bias(product, parameter(graph, bias_, "bias")) : product;
}

template class Conv<1>;
template class Conv<2>;
template class Conv<3>;
template class ConvTranspose<1>;
template class ConvTranspose<2>;
template class ConvTranspose<3>;

}  // namespace concord::nn
