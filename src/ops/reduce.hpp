// Reductions over any set of axes. The order of summation is fixed on each device.
#pragma once

#include "concord/core/export.hpp"
#include "concord/graph/operator.hpp"

namespace CONCORD_PUBLIC concord {
namespace ops {

enum class ReduceKind : std::uint8_t { sum, product, maximum, minimum, norm, argmax };

/// src f32 → the same rank; the reduced axes have size 1. Of no elements, the sum and the norm are 0 and the product is
/// 1; the others are refused. norm is the Euclidean norm: squares neither overflow nor underflow, and a norm above the
/// largest fp32 number is that number. argmax (one axis) gives i32, the first of equal maxima.
class Reduce final : public Operator {
 public:
  /// `axes` are sorted, distinct and in [0, rank).
  Reduce(ReduceKind kind, std::vector<std::size_t> axes) : kind_(kind), axes_(std::move(axes)) {}
  [[nodiscard]] std::string_view name() const override;
  [[nodiscard]] std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  [[nodiscard]] std::vector<Value> gradient(const Node& node, std::span<const Value> diff_dst,
                                            const std::vector<bool>& wanted) const override;
  [[nodiscard]] Cost cost(std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs) const override;
  [[nodiscard]] std::string attributes() const override;
  [[nodiscard]] ReduceKind kind() const { return kind_; }
  [[nodiscard]] const std::vector<std::size_t>& axes() const { return axes_; }

 private:
  ReduceKind kind_;
  std::vector<std::size_t> axes_;
};

}  // namespace ops

/// Reductions over `axes`; empty means all axes, negative ones count from the end. `keep_dims` keeps the reduced axes
/// with size 1.
Value sum(Value x, std::vector<std::int64_t> axes = {}, bool keep_dims = false);
Value mean(Value x, std::vector<std::int64_t> axes = {}, bool keep_dims = false);
/// The product. Its gradient is the product of the other elements, also where some are 0; the gradient of that gradient
/// takes elements that are 0 for constants.
Value prod(Value x, std::vector<std::int64_t> axes = {}, bool keep_dims = false);
Value reduce_max(Value x, std::vector<std::int64_t> axes = {}, bool keep_dims = false);
Value reduce_min(Value x, std::vector<std::int64_t> axes = {}, bool keep_dims = false);
/// The Euclidean norm. Its gradient is 0 where the norm is 0.
Value norm(Value x, std::vector<std::int64_t> axes = {}, bool keep_dims = false);
/// The index, i32, of the largest element along `axis`; the first of equal ones.
Value argmax(Value x, std::int64_t axis, bool keep_dims = false);
/// Sums x over the axes along which `shape` broadcasts to the shape of x, and reshapes the result to `shape`.
Value sum_to(Value x, const Shape& shape);

}  // namespace concord
