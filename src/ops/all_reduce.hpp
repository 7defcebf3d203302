// A value summed over the ranks of a training, within a step.
#pragma once

#include "concord/core/export.hpp"
#include "concord/graph/operator.hpp"

namespace CONCORD_PUBLIC concord {
namespace ops {

/// src f32 → the sum of src over all ranks, in their order, in fp32. The loss of a training on several ranks is the sum
/// of their losses, so the gradient is the sum of all ranks' gradients. A device only copies src; whoever runs the
/// program sums (Program::all_reduce_by).
class AllReduce final : public Operator {
 public:
  [[nodiscard]] std::string_view name() const override { return "all_reduce"; }
  [[nodiscard]] std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  [[nodiscard]] std::vector<Value> gradient(const Node& node, std::span<const Value> diff_dst,
                                            const std::vector<bool>& wanted) const override;
};

}  // namespace ops

/// Returns the sum of x over the ranks of a training, in their order. In a training on one device, in evaluations and
/// in predictions of a Trainer it is x. All ranks run the same all_reduces in the same order. Throws ShapeError unless
/// x is f32.
Value all_reduce(Value x);
/// Returns (ranks, …x.shape): row r is x of rank r. `rank` is this one. Throws ShapeError unless x is f32,
/// ArgumentError unless 0 <= rank < ranks.
Value all_gather(Value x, int rank, int ranks);

/// The number of elements of the largest all_reduce of a graph; 0 if it has none.
[[nodiscard]] std::int64_t most_all_reduced(const Graph& graph);

}  // namespace concord
