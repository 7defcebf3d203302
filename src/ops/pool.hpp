// Max and average pooling over the last two dimensions, and their gradients.
#pragma once

#include <array>

#include "concord/graph/operator.hpp"

namespace concord {
namespace ops {

struct PoolOptions {
  std::array<std::int64_t, 2> kernel{2, 2};
  std::array<std::int64_t, 2> stride{0, 0};  // 0: the kernel's size
  std::array<std::int64_t, 2> padding{0, 0};
  bool ceil_mode = false;
  bool count_include_pad = true;  // average only
  [[nodiscard]] std::string str() const;
};

struct PoolSizes {
  std::int64_t n, c, h, w, oh, ow;
  PoolOptions options;  // strides filled in
};
/// Output sizes as PyTorch computes them. Throws ShapeError.
[[nodiscard]] PoolSizes pool_sizes(const Shape& src, const PoolOptions& options);

/// src (N, C, H, W) → dst (N, C, oH, oW) and argmax, i32 of the same shape: the winner's offset in its window,
/// row·kW + column; the first winner at a tie; a NaN wins.
class MaxPool final : public Operator {
 public:
  explicit MaxPool(PoolOptions options) : options_(options) {}
  [[nodiscard]] std::string_view name() const override { return "max_pool"; }
  [[nodiscard]] std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  [[nodiscard]] std::vector<Value> gradient(const Node& node, std::span<const Value> diff_dst,
                                            const std::vector<bool>& wanted) const override;
  [[nodiscard]] std::string attributes() const override { return options_.str(); }
  [[nodiscard]] const PoolOptions& options() const { return options_; }

 private:
  PoolOptions options_;
};

/// diff_dst, argmax → diff_src of shape `src`.
class MaxPoolBackward final : public Operator {
 public:
  MaxPoolBackward(PoolOptions options, Shape src) : options_(options), src_(std::move(src)) {}
  [[nodiscard]] std::string_view name() const override { return "max_pool_backward"; }
  [[nodiscard]] std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  [[nodiscard]] std::string attributes() const override { return options_.str() + " src " + src_.str(); }
  [[nodiscard]] const PoolOptions& options() const { return options_; }
  [[nodiscard]] const Shape& src() const { return src_; }

 private:
  PoolOptions options_;
  Shape src_;
};

/// src (N, C, H, W) → dst (N, C, oH, oW).
class AvgPool final : public Operator {
 public:
  explicit AvgPool(PoolOptions options) : options_(options) {}
  [[nodiscard]] std::string_view name() const override { return "avg_pool"; }
  [[nodiscard]] std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  [[nodiscard]] std::vector<Value> gradient(const Node& node, std::span<const Value> diff_dst,
                                            const std::vector<bool>& wanted) const override;
  [[nodiscard]] std::string attributes() const override { return options_.str(); }
  [[nodiscard]] const PoolOptions& options() const { return options_; }

 private:
  PoolOptions options_;
};

/// diff_dst → diff_src of shape `src`.
class AvgPoolBackward final : public Operator {
 public:
  AvgPoolBackward(PoolOptions options, Shape src) : options_(options), src_(std::move(src)) {}
  [[nodiscard]] std::string_view name() const override { return "avg_pool_backward"; }
  [[nodiscard]] std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  [[nodiscard]] std::vector<Value> gradient(const Node& node, std::span<const Value> diff_dst,
                                            const std::vector<bool>& wanted) const override;
  [[nodiscard]] std::string attributes() const override { return options_.str() + " src " + src_.str(); }
  [[nodiscard]] const PoolOptions& options() const { return options_; }
  [[nodiscard]] const Shape& src() const { return src_; }

 private:
  PoolOptions options_;
  Shape src_;
};

}  // namespace ops

using Pool2dOptions = ops::PoolOptions;
Value max_pool2d(Value x, const Pool2dOptions& options);
Value avg_pool2d(Value x, const Pool2dOptions& options);
/// (N, C, H, W) → (N, C, 1, 1), the mean.
Value global_avg_pool2d(Value x);

}  // namespace concord
