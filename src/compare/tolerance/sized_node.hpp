// SizedNode: a node and how large its values are. Used by the rules of tolerance_of.
#pragma once

#include <cstddef>
#include <span>

#include "concord/compare/tolerance/attention.hpp"
#include "concord/compare/tolerance/magnitude.hpp"
#include "concord/compare/tolerance/pointwise.hpp"
#include "concord/compile/program.hpp"
#include "concord/graph/operator.hpp"

namespace concord {

/// A node and the magnitudes of its values. A tensor is read once, however many terms of a tolerance need it.
class SizedNode {
 public:
  SizedNode(const ReplayedNode& node, std::span<const Tensor> of_node, Magnitudes& magnitudes)
      : entry(node.entry), op(node.op), inputs(node.inputs), results(of_node), node_(node), magnitudes_(magnitudes) {}
  /// The operator without its epilogue, which has the first of the inputs. `fused` and its operator live on.
  SizedNode(const SizedNode& fused, const Operator* base, std::size_t base_inputs)
      : entry(fused.entry),
        op(base),
        inputs(fused.inputs.first(base_inputs)),
        results(fused.results),
        node_(fused.node_),
        magnitudes_(fused.magnitudes_) {}
  const TraceEntry& entry;
  const Operator* op;
  std::span<const Tensor> inputs, results;
  [[nodiscard]] double largest(const Tensor& tensor) const { return magnitudes_.of(tensor).largest; }
  [[nodiscard]] double rms(const Tensor& tensor) const { return magnitudes_.of(tensor).rms; }
  [[nodiscard]] double largest_rms_along(const Tensor& tensor, std::span<const std::size_t> axes) const {
    return magnitudes_.largest_rms_along(tensor, axes);
  }
  [[nodiscard]] double of_attention(std::size_t k, double unit) const {
    return attention_tolerance(node_, results, k, unit, magnitudes_);
  }
  [[nodiscard]] double scale_of_pointwise(std::size_t k) const { return pointwise_scale(node_, k, magnitudes_); }
  [[nodiscard]] double of_pointwise(std::size_t k) const { return pointwise_tolerance(node_, results, k, magnitudes_); }

 private:
  const ReplayedNode& node_;
  Magnitudes& magnitudes_;
};

template <class Op>
bool is(const Operator* op) {
  return dynamic_cast<const Op*>(op) != nullptr;
}

}  // namespace concord
