// The functions of convolution as users call them, for each number of dimensions.
#include <algorithm>

#include "concord/core/check.hpp"
#include "concord/ops/conv.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/rearrange.hpp"
#include "concord/ops/rules.hpp"

namespace concord {
namespace {

template <std::size_t Rank>
Value conv(Value x, Value weights, const ConvNdOptions<Rank>& options) {
  return x.graph().add(std::make_shared<ops::Conv>(options), {x, weights});
}

template <std::size_t Rank>
Value conv_transpose(Value x, Value weights, const ConvTransposeNdOptions<Rank>& options) {
  const std::string name = fmt::format("conv_transpose{}d", Rank);
  const Shape &src = x.shape(), &kernels = weights.shape();
  CONCORD_CHECK(src.rank() == Rank + 2 && kernels.rank() == Rank + 2, ShapeError,
                "{}: expected x {} and weights {}, got {} and {}", name, ops::spatial_form("N, C", "", Rank),
                ops::spatial_form("C, O/groups", "k", Rank), src.str(), kernels.str());
  CONCORD_CHECK(kernels[0] == src[1] && options.groups >= 1 && src[1] % options.groups == 0, ShapeError,
                "{}: x {} has {} channels, weights {} are for {} in {} groups", name, src.str(), src[1], kernels.str(),
                kernels[0], options.groups);
  CONCORD_CHECK(*std::ranges::min_element(src.dims().subspan(1)) >= 1, ShapeError, "{}: x {} has no channels or pixels",
                name, src.str());
  ops::ConvOptions back = ConvNdOptions<Rank>{.stride = options.stride,
                                              .padding = options.padding,
                                              .dilation = options.dilation,
                                              .groups = options.groups,
                                              .padding_after = options.padding_after};
  const ops::Spatial extra = ops::spatial(options.output_padding, 0), kernel = ops::spatial_of(kernels);
  ops::Spatial dst = ops::spatial_of(src);
  std::vector<std::int64_t> beyond(Rank + 2, 0);  // pixels of the result after those that any window reaches
  for (std::size_t i = 3 - Rank; i < 3; ++i) {
    CONCORD_CHECK(back.stride[i] >= 1 && back.dilation[i] >= 1 && back.padding[i] >= 0 && back.padding_after[i] >= 0,
                  ShapeError, "{}: {}: stride and dilation must be at least 1, padding at least 0", name, back.str());
    CONCORD_CHECK(extra[i] >= 0 && extra[i] < std::max(back.stride[i], back.dilation[i]), ShapeError,
                  "{}: output_padding {} must be smaller than stride or dilation: {}", name, ops::str(extra, Rank),
                  back.str());
    dst[i] = (dst[i] - 1) * back.stride[i] - back.padding[i] - back.padding_after[i] +
             back.dilation[i] * (kernel[i] - 1) + extra[i] + 1;
    CONCORD_CHECK(dst[i] >= 1, ShapeError, "{}: x {} and weights {} leave {} pixels along {} with {}", name, src.str(),
                  kernels.str(), dst[i], ops::name_of_axis(i), back.str());
    if (extra[i] < back.stride[i]) continue;  // a convolution back rounds the extra pixels off
    const std::int64_t cut = back.padding_after[i] - extra[i];
    back.padding_after[i] = std::max<std::int64_t>(cut, 0);
    beyond[i + Rank - 1] = std::max<std::int64_t>(-cut, 0);
    dst[i] -= beyond[i + Rank - 1];
  }
  const Shape reached = ops::with_spatial(src[0], kernels[1] * options.groups, dst, Rank);
  const Value result = x.graph().add(std::make_shared<ops::ConvBackwardData>(back, reached), {x, weights});
  return pad(result, std::vector<std::int64_t>(Rank + 2, 0), beyond);
}

}  // namespace

Value conv1d(Value x, Value weights, const Conv1dOptions& options) { return conv(x, weights, options); }
Value conv2d(Value x, Value weights, const Conv2dOptions& options) { return conv(x, weights, options); }
Value conv3d(Value x, Value weights, const Conv3dOptions& options) { return conv(x, weights, options); }

Value conv_transpose1d(Value x, Value weights, const ConvTranspose1dOptions& options) {
  return conv_transpose(x, weights, options);
}
Value conv_transpose2d(Value x, Value weights, const ConvTranspose2dOptions& options) {
  return conv_transpose(x, weights, options);
}
Value conv_transpose3d(Value x, Value weights, const ConvTranspose3dOptions& options) {
  return conv_transpose(x, weights, options);
}

Value mirror_kernel(Value weights) {
  std::vector<std::int64_t> axes;
  for (std::size_t axis = 2; axis < weights.shape().rank(); ++axis) axes.push_back(static_cast<std::int64_t>(axis));
  return flip(weights, axes);
}

}  // namespace concord
