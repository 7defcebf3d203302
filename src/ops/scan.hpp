// Cumulative sums along an axis.
#pragma once

#include "concord/core/export.hpp"
#include "concord/graph/operator.hpp"

namespace CONCORD_PUBLIC concord {
namespace ops {

/// dst[i] = Σ src[j] over j <= i along `axis`. exclusive: over j < i. reverse: from the end. The order of summation is
/// fixed.
class CumSum final : public Operator {
 public:
  CumSum(std::size_t axis, bool exclusive, bool reverse) : axis_(axis), exclusive_(exclusive), reverse_(reverse) {}
  [[nodiscard]] std::string_view name() const override { return "cumsum"; }
  [[nodiscard]] std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  [[nodiscard]] std::vector<Value> gradient(const Node& node, std::span<const Value> diff_dst,
                                            const std::vector<bool>& wanted) const override;
  [[nodiscard]] std::string attributes() const override;
  [[nodiscard]] std::size_t axis() const { return axis_; }
  [[nodiscard]] bool exclusive() const { return exclusive_; }
  [[nodiscard]] bool reverse() const { return reverse_; }

 private:
  std::size_t axis_;
  bool exclusive_, reverse_;
};

}  // namespace ops

struct CumSumOptions {
  bool exclusive = false, reverse = false;
};
/// Sums of f32 along `axis` up to each element; see ops::CumSum.
Value cumsum(Value x, std::int64_t axis, const CumSumOptions& options = {});

}  // namespace concord
