// Convolution (a cross-correlation, as in PyTorch and ONNX) of signals, images and volumes, and its two gradients as
// separate operators. The transposed convolution is the gradient with respect to the data. mirror_kernel gives the
// convolution of mathematics.
#pragma once

#include <optional>

#include "concord/core/export.hpp"
#include "concord/graph/operator.hpp"
#include "concord/ops/spatial.hpp"

namespace CONCORD_PUBLIC concord {
namespace ops {

struct ConvOptions {
  std::size_t rank = 2;  // spatial dimensions, 1 to 3
  Spatial stride{1, 1, 1};
  Spatial padding{0, 0, 0};        // zeros before the first pixel
  Spatial padding_after{0, 0, 0};  // zeros after the last pixel
  Spatial dilation{1, 1, 1};       // distance between kernel elements
  std::int64_t groups = 1;
  friend bool operator==(const ConvOptions&, const ConvOptions&) = default;
  [[nodiscard]] std::string str() const;
};

/// The sizes of a convolution, for operators and kernels. Images have depth 1; signals have depth and height 1.
struct ConvSizes {
  std::int64_t n, c, d, h, w;  // src   (N, C, D, H, W)
  std::int64_t o, kd, kh, kw;  // weights (O, C/groups, kD, kH, kW)
  std::int64_t od, oh, ow;     // dst   (N, O, oD, oH, oW)
  ConvOptions options;

  /// The number of elements of one channel.
  [[nodiscard]] std::int64_t src_plane() const { return d * h * w; }
  [[nodiscard]] std::int64_t dst_plane() const { return od * oh * ow; }
  [[nodiscard]] std::int64_t taps() const { return kd * kh * kw; }
  [[nodiscard]] std::int64_t group_c() const { return c / options.groups; }
  [[nodiscard]] std::int64_t group_o() const { return o / options.groups; }
  [[nodiscard]] bool is_padded() const;
};
/// Throws ShapeError if src, weights and options do not match.
[[nodiscard]] ConvSizes conv_sizes(const Shape& src, const Shape& weights, const ConvOptions& options);

/// The base of the three operators. They differ in which two of (src, weights, dst) are their inputs.
class ConvFamily : public Operator {
 public:
  explicit ConvFamily(ConvOptions options) : options_(options) {}
  [[nodiscard]] std::string attributes() const override { return options_.str(); }
  [[nodiscard]] const ConvOptions& options() const { return options_; }
  [[nodiscard]] Cost cost(std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs) const override;
  /// The sizes of the forward convolution.
  [[nodiscard]] virtual ConvSizes sizes(std::span<const TensorSpec> inputs) const = 0;

 private:
  ConvOptions options_;
};

/// src (N, C, …), weights (O, C/groups, …) → dst (N, O, …).
class Conv final : public ConvFamily {
 public:
  using ConvFamily::ConvFamily;
  /// "conv1d", "conv2d" or "conv3d".
  [[nodiscard]] std::string_view name() const override;
  [[nodiscard]] std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  [[nodiscard]] std::vector<Value> gradient(const Node& node, std::span<const Value> diff_dst,
                                            const std::vector<bool>& wanted) const override;
  [[nodiscard]] ConvSizes sizes(std::span<const TensorSpec> inputs) const override;
};

/// diff_dst (N, O, …), weights → diff_src with the shape `src`.
class ConvBackwardData final : public ConvFamily {
 public:
  ConvBackwardData(ConvOptions options, Shape src) : ConvFamily(options), src_(std::move(src)) {}
  /// "conv2d_backward_data" and so on.
  [[nodiscard]] std::string_view name() const override;
  [[nodiscard]] std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  [[nodiscard]] std::vector<Value> gradient(const Node& node, std::span<const Value> diff_dst,
                                            const std::vector<bool>& wanted) const override;
  [[nodiscard]] std::string attributes() const override { return options().str() + " src " + src_.str(); }
  [[nodiscard]] ConvSizes sizes(std::span<const TensorSpec> inputs) const override;

 private:
  Shape src_;
};

/// src, diff_dst → diff_weights with the shape `weights`.
class ConvBackwardWeights final : public ConvFamily {
 public:
  ConvBackwardWeights(ConvOptions options, Shape weights) : ConvFamily(options), weights_(std::move(weights)) {}
  /// "conv2d_backward_weights" and so on.
  [[nodiscard]] std::string_view name() const override;
  [[nodiscard]] std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  [[nodiscard]] std::vector<Value> gradient(const Node& node, std::span<const Value> diff_dst,
                                            const std::vector<bool>& wanted) const override;
  [[nodiscard]] std::string attributes() const override { return options().str() + " weights " + weights_.str(); }
  [[nodiscard]] ConvSizes sizes(std::span<const TensorSpec> inputs) const override;

 private:
  Shape weights_;
};

}  // namespace ops

/// Options of a convolution over `Rank` spatial dimensions.
template <std::size_t Rank>
struct ConvNdOptions {
  using Sizes = std::array<std::int64_t, Rank>;
  Sizes stride = ops::everywhere<Rank>(1);
  Sizes padding = ops::everywhere<Rank>(0);   // zeros before the first pixel
  Sizes dilation = ops::everywhere<Rank>(1);  // distance between kernel elements
  std::int64_t groups = 1;
  std::optional<Sizes> padding_after = {};  // zeros after the last pixel; empty: equal to `padding`

  operator ops::ConvOptions() const {  // NOLINT(google-explicit-constructor)
    return {Rank,
            ops::spatial(stride, 1),
            ops::spatial(padding, 0),
            ops::spatial(padding_after.value_or(padding), 0),
            ops::spatial(dilation, 1),
            groups};
  }
  [[nodiscard]] std::string str() const { return ops::ConvOptions(*this).str(); }
};
using Conv1dOptions = ConvNdOptions<1>;
using Conv2dOptions = ConvNdOptions<2>;
using Conv3dOptions = ConvNdOptions<3>;

/// x (N, C, W) * weights (O, C/groups, kW) → (N, O, oW).
Value conv1d(Value x, Value weights, const Conv1dOptions& options = {});
/// x (N, C, H, W) * weights (O, C/groups, kH, kW) → (N, O, oH, oW).
Value conv2d(Value x, Value weights, const Conv2dOptions& options = {});
/// x (N, C, D, H, W) * weights (O, C/groups, kD, kH, kW) → (N, O, oD, oH, oW).
Value conv3d(Value x, Value weights, const Conv3dOptions& options = {});

/// Options of a transposed convolution over `Rank` spatial dimensions.
template <std::size_t Rank>
struct ConvTransposeNdOptions {
  using Sizes = std::array<std::int64_t, Rank>;
  Sizes stride = ops::everywhere<Rank>(1);
  Sizes padding = ops::everywhere<Rank>(0);         // pixels removed at the start of the result
  Sizes output_padding = ops::everywhere<Rank>(0);  // pixels added at the end of the result
  Sizes dilation = ops::everywhere<Rank>(1);
  std::int64_t groups = 1;
  std::optional<Sizes> padding_after = {};  // pixels removed at the end; empty: equal to `padding`
};
using ConvTranspose1dOptions = ConvTransposeNdOptions<1>;
using ConvTranspose2dOptions = ConvTransposeNdOptions<2>;
using ConvTranspose3dOptions = ConvTransposeNdOptions<3>;

/// x (N, C, …), weights (C, O/groups, k…) → (N, O, …). Size i of x becomes (i − 1)·stride − padding − padding_after +
/// dilation·(k − 1) + output_padding + 1. It is the gradient, with respect to the data, of the convolution from the
/// result to x. output_padding must be less than the stride or the dilation, as in PyTorch.
Value conv_transpose1d(Value x, Value weights, const ConvTranspose1dOptions& options = {});
Value conv_transpose2d(Value x, Value weights, const ConvTranspose2dOptions& options = {});
Value conv_transpose3d(Value x, Value weights, const ConvTranspose3dOptions& options = {});

/// Mirrors the spatial dimensions of weights (O, C/groups, …). With mirrored weights, a cross-correlation is the
/// convolution of mathematics and signal processing.
Value mirror_kernel(Value weights);

}  // namespace concord
