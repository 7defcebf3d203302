// A value that gradients treat as a constant.
#pragma once

#include "concord/core/export.hpp"
#include "concord/graph/operator.hpp"

namespace CONCORD_PUBLIC concord {
namespace ops {

/// The same bytes, without a gradient.
class StopGradient final : public Operator {
 public:
  [[nodiscard]] std::string_view name() const override { return "stop_gradient"; }
  [[nodiscard]] std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  [[nodiscard]] std::vector<Value> gradient(const Node& node, std::span<const Value> diff_dst,
                                            const std::vector<bool>& wanted) const override;
  [[nodiscard]] bool is_alias() const override { return true; }
};

}  // namespace ops

/// x, for which no gradient goes on, as torch.Tensor.detach.
Value stop_gradient(Value x);

}  // namespace concord
