// Two-dimensional convolution (cross-correlation, as in PyTorch and ONNX) and its two gradients, each an
// operator of its own.
#pragma once

#include <array>

#include "concord/graph/operator.hpp"

namespace concord {
namespace ops {

struct ConvOptions {
  std::array<std::int64_t, 2> stride{1, 1};    // rows, columns
  std::array<std::int64_t, 2> padding{0, 0};   // zeros on both sides
  std::array<std::int64_t, 2> dilation{1, 1};  // distance of kernel elements
  std::int64_t groups = 1;
  friend bool operator==(const ConvOptions&, const ConvOptions&) = default;
  [[nodiscard]] std::string str() const;
};

/// What every convolution operator and kernel needs to know.
struct ConvSizes {
  std::int64_t n, c, h, w;          // src   (N, C, H, W)
  std::int64_t o, kh, kw;           // weights (O, C/groups, kH, kW)
  std::int64_t oh, ow;              // dst   (N, O, oH, oW)
  ConvOptions options;
};
/// Throws ShapeError when src, weights and options do not fit.
[[nodiscard]] ConvSizes conv_sizes(const Shape& src, const Shape& weights, const ConvOptions& options);

/// Common part of the three: they differ in which two of (src, weights, dst) are given.
class ConvFamily : public Operator {
 public:
  explicit ConvFamily(ConvOptions options) : options_(options) {}
  [[nodiscard]] std::string attributes() const override { return options_.str(); }
  [[nodiscard]] const ConvOptions& options() const { return options_; }
  [[nodiscard]] Cost cost(std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs) const override;
  /// The sizes of the forward convolution this belongs to.
  [[nodiscard]] virtual ConvSizes sizes(std::span<const TensorSpec> inputs) const = 0;

 private:
  ConvOptions options_;
};

/// src (N, C, H, W), weights (O, C/groups, kH, kW) → dst (N, O, oH, oW).
class Conv2d final : public ConvFamily {
 public:
  using ConvFamily::ConvFamily;
  [[nodiscard]] std::string_view name() const override { return "conv2d"; }
  [[nodiscard]] std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  [[nodiscard]] std::vector<Value> gradient(const Node& node, std::span<const Value> diff_dst,
                                            const std::vector<bool>& wanted) const override;
  [[nodiscard]] ConvSizes sizes(std::span<const TensorSpec> inputs) const override;
};

/// diff_dst (N, O, oH, oW), weights → diff_src of shape `src`.
class Conv2dBackwardData final : public ConvFamily {
 public:
  Conv2dBackwardData(ConvOptions options, Shape src) : ConvFamily(options), src_(std::move(src)) {}
  [[nodiscard]] std::string_view name() const override { return "conv2d_backward_data"; }
  [[nodiscard]] std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  [[nodiscard]] std::vector<Value> gradient(const Node& node, std::span<const Value> diff_dst,
                                            const std::vector<bool>& wanted) const override;
  [[nodiscard]] std::string attributes() const override { return options().str() + " src " + src_.str(); }
  [[nodiscard]] ConvSizes sizes(std::span<const TensorSpec> inputs) const override;

 private:
  Shape src_;
};

/// src, diff_dst → diff_weights of shape `weights`.
class Conv2dBackwardWeights final : public ConvFamily {
 public:
  Conv2dBackwardWeights(ConvOptions options, Shape weights) : ConvFamily(options), weights_(std::move(weights)) {}
  [[nodiscard]] std::string_view name() const override { return "conv2d_backward_weights"; }
  [[nodiscard]] std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  [[nodiscard]] std::vector<Value> gradient(const Node& node, std::span<const Value> diff_dst,
                                            const std::vector<bool>& wanted) const override;
  [[nodiscard]] std::string attributes() const override { return options().str() + " weights " + weights_.str(); }
  [[nodiscard]] ConvSizes sizes(std::span<const TensorSpec> inputs) const override;

 private:
  Shape weights_;
};

}  // namespace ops

using Conv2dOptions = ops::ConvOptions;
/// x (N, C, H, W) * weights (O, C/groups, kH, kW) → (N, O, oH, oW).
Value conv2d(Value x, Value weights, const Conv2dOptions& options = {});

}  // namespace concord
