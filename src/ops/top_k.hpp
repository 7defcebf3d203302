// The k largest or smallest values along an axis.
#pragma once

#include "concord/core/export.hpp"
#include "concord/graph/operator.hpp"

namespace CONCORD_PUBLIC concord {
namespace ops {

/// src f32 → values f32 and indices i32, with size `k` along `axis`: the largest values in descending order, or the
/// smallest in ascending order. Equal values keep their order. A NaN counts as larger than any number.
class TopK final : public Operator {
 public:
  TopK(std::int64_t k, std::size_t axis, bool largest) : k_(k), axis_(axis), largest_(largest) {}
  [[nodiscard]] std::string_view name() const override { return "top_k"; }
  [[nodiscard]] std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  [[nodiscard]] std::vector<Value> gradient(const Node& node, std::span<const Value> diff_dst,
                                            const std::vector<bool>& wanted) const override;
  [[nodiscard]] std::string attributes() const override;
  [[nodiscard]] std::int64_t k() const { return k_; }
  [[nodiscard]] std::size_t axis() const { return axis_; }
  [[nodiscard]] bool largest() const { return largest_; }

 private:
  std::int64_t k_;
  std::size_t axis_;
  bool largest_;
};

}  // namespace ops

/// Both have size k along the axis; indices are i32.
struct TopKResult {
  Value values, indices;
};
/// See ops::TopK.
TopKResult top_k(Value x, std::int64_t k, std::int64_t axis = -1, bool largest = true);

}  // namespace concord
