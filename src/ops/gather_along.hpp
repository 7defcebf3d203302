// Gather and scatter-add along one axis, with one index for each element: torch.gather and torch.scatter_add.
#pragma once

#include "concord/core/export.hpp"
#include "concord/graph/operator.hpp"

namespace CONCORD_PUBLIC concord {
namespace ops {

/// dst[a, i, b] = src[a, indices[a, i, b], b]. src has any type. indices i32 have the shape of src except along `axis`;
/// dst has the shape of indices. An index outside the axis gives NaN in f32 and 0 in other types.
class GatherAlong final : public Operator {
 public:
  explicit GatherAlong(std::size_t axis) : axis_(axis) {}
  [[nodiscard]] std::string_view name() const override { return "gather_along"; }
  [[nodiscard]] std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  [[nodiscard]] std::vector<Value> gradient(const Node& node, std::span<const Value> diff_dst,
                                            const std::vector<bool>& wanted) const override;
  [[nodiscard]] std::string attributes() const override;
  [[nodiscard]] std::size_t axis() const { return axis_; }

 private:
  std::size_t axis_;
};

/// dst[a, r, b] is the sum of the src[a, i, b] with indices[a, i, b] = r, in the order of i. src f32 and indices i32
/// have one shape; dst has it with `size` along `axis`. Indices outside [0, size) are skipped.
class ScatterAddAlong final : public Operator {
 public:
  ScatterAddAlong(std::size_t axis, std::int64_t size) : axis_(axis), size_(size) {}
  [[nodiscard]] std::string_view name() const override { return "scatter_add_along"; }
  [[nodiscard]] std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  [[nodiscard]] std::vector<Value> gradient(const Node& node, std::span<const Value> diff_dst,
                                            const std::vector<bool>& wanted) const override;
  [[nodiscard]] std::string attributes() const override;
  [[nodiscard]] std::size_t axis() const { return axis_; }
  [[nodiscard]] std::int64_t size() const { return size_; }

 private:
  std::size_t axis_;
  std::int64_t size_;
};

}  // namespace ops

/// See ops::GatherAlong.
Value gather_along(Value x, Value indices, std::int64_t axis);
/// See ops::ScatterAddAlong.
Value scatter_add_along(Value src, Value indices, std::int64_t axis, std::int64_t size);

}  // namespace concord
