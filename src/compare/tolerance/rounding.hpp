// Largest errors by rounding in fp32, by family of operators, and the magnitudes of a node's values, on which they
// depend. Used by tolerance_of, which adds the effects of other precisions and of subnormal numbers.
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

/// The first table of tolerance.hpp, for result k.
[[nodiscard]] double rounding_of(const SizedNode& node, std::size_t k);

/// The operator itself, without an epilogue.
[[nodiscard]] const Operator* unfused(const Operator* op);
/// A matrix product or a convolution, without an epilogue.
[[nodiscard]] bool is_product(const Operator* op);
/// Products summed for one element of the result.
[[nodiscard]] double product_terms(const SizedNode& node);
/// The size of a factor: that of the largest numbers that are summed together, since after a few steps of training
/// those of the labels seen are far larger than the others.
[[nodiscard]] double factor_scale(const SizedNode& node, std::size_t input);

}  // namespace concord
