// The copy family: operators that move values. Reshape costs nothing; the others are one strided copy.
#pragma once

#include "concord/core/export.hpp"
#include "concord/graph/operator.hpp"

namespace CONCORD_PUBLIC concord {
namespace ops {

/// The same bytes with another shape.
class Reshape final : public Operator {
 public:
  explicit Reshape(Shape shape) : shape_(std::move(shape)) {}
  [[nodiscard]] std::string_view name() const override { return "reshape"; }
  [[nodiscard]] std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  [[nodiscard]] std::vector<Value> gradient(const Node& node, std::span<const Value> diff_dst,
                                            const std::vector<bool>& wanted) const override;
  [[nodiscard]] std::string attributes() const override { return shape_.str(); }
  [[nodiscard]] bool is_alias() const override { return true; }

 private:
  Shape shape_;
};

/// Dimension i of dst is dimension order[i] of src.
class Transpose final : public Operator {
 public:
  explicit Transpose(std::vector<std::size_t> order) : order_(std::move(order)) {}
  [[nodiscard]] std::string_view name() const override { return "transpose"; }
  [[nodiscard]] std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  [[nodiscard]] std::vector<Value> gradient(const Node& node, std::span<const Value> diff_dst,
                                            const std::vector<bool>& wanted) const override;
  [[nodiscard]] std::string attributes() const override;
  [[nodiscard]] const std::vector<std::size_t>& order() const { return order_; }

 private:
  std::vector<std::size_t> order_;
};

/// dst[i…] = src[start + step·i…] with step >= 1.
class Slice final : public Operator {
 public:
  Slice(std::vector<std::int64_t> start, std::vector<std::int64_t> step, Shape dst)
      : start_(std::move(start)), step_(std::move(step)), dst_(std::move(dst)) {}
  [[nodiscard]] std::string_view name() const override { return "slice"; }
  [[nodiscard]] std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  [[nodiscard]] std::vector<Value> gradient(const Node& node, std::span<const Value> diff_dst,
                                            const std::vector<bool>& wanted) const override;
  [[nodiscard]] std::string attributes() const override;
  [[nodiscard]] const std::vector<std::int64_t>& start() const { return start_; }
  [[nodiscard]] const std::vector<std::int64_t>& step() const { return step_; }

 private:
  std::vector<std::int64_t> start_, step_;
  Shape dst_;
};

/// dst[before + step·i…] = src[i…], and `value` elsewhere: padding, and the gradient of Slice.
class Pad final : public Operator {
 public:
  Pad(std::vector<std::int64_t> before, std::vector<std::int64_t> step, Shape dst, float value)
      : before_(std::move(before)), step_(std::move(step)), dst_(std::move(dst)), value_(value) {}
  [[nodiscard]] std::string_view name() const override { return "pad"; }
  [[nodiscard]] std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  [[nodiscard]] std::vector<Value> gradient(const Node& node, std::span<const Value> diff_dst,
                                            const std::vector<bool>& wanted) const override;
  [[nodiscard]] std::string attributes() const override;
  [[nodiscard]] const std::vector<std::int64_t>& before() const { return before_; }
  [[nodiscard]] const std::vector<std::int64_t>& step() const { return step_; }
  [[nodiscard]] float value() const { return value_; }

 private:
  std::vector<std::int64_t> before_, step_;
  Shape dst_;
  float value_;
};

/// Joins the inputs along `axis`.
class Concat final : public Operator {
 public:
  explicit Concat(std::size_t axis) : axis_(axis) {}
  [[nodiscard]] std::string_view name() const override { return "concat"; }
  [[nodiscard]] std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  [[nodiscard]] std::vector<Value> gradient(const Node& node, std::span<const Value> diff_dst,
                                            const std::vector<bool>& wanted) const override;
  [[nodiscard]] std::string attributes() const override;
  [[nodiscard]] std::size_t axis() const { return axis_; }

 private:
  std::size_t axis_;
};

}  // namespace ops

/// Changes the shape. One dimension may be -1: it follows from the number of elements.
Value reshape(Value x, std::vector<std::int64_t> dims);
Value reshape(Value x, const Shape& shape);
inline Value reshape(Value x, std::initializer_list<std::int64_t> dims) {
  return reshape(x, std::vector<std::int64_t>(dims));
}
/// Joins the dimensions from `start_axis` on into one.
Value flatten(Value x, std::int64_t start_axis = 1);
/// Dimension i of the result is dimension order[i] of x.
Value transpose(Value x, std::vector<std::int64_t> order);
/// x[start:stop:step] along one axis. A negative start or stop counts from the end.
Value slice(Value x, std::int64_t axis, std::int64_t start, std::int64_t stop, std::int64_t step = 1);
/// Pads each dimension with before[i] and after[i] elements, >= 0.
Value pad(Value x, std::vector<std::int64_t> before, std::vector<std::int64_t> after, float value = 0);
/// Joins values of equal shape except along `axis`.
Value concat(std::vector<Value> values, std::int64_t axis);

}  // namespace concord
