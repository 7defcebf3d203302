// A rule for the operators that have such numbers.
#include "concord/compare/tolerance/operand_scale.hpp"

#include <algorithm>

#include "concord/ops/attention.hpp"
#include "concord/ops/loss_gradient.hpp"
#include "concord/ops/softmax.hpp"

namespace concord {
namespace {

/// The largest number of the f32 tensors.
double largest_of(const SizedNode& node, std::span<const Tensor> tensors) {
  double most = 0;
  for (const Tensor& tensor : tensors) {
    if (tensor.dtype() == DType::f32) most = std::max(most, node.largest(tensor));
  }
  return most;
}

}  // namespace

bool is_softmax(const Operator* op) {
  const auto* softmax = dynamic_cast<const ops::Softmax*>(op);
  return softmax != nullptr && !softmax->log();
}

double operand_scale(const SizedNode& node, std::size_t k) {
  using Joined = ops::CrossEntropyWithGradient;
  constexpr std::size_t kMasked = 3, kMaskedBackward = 6;  // the first operand of attention that may be a mask
  constexpr std::size_t kOfRows = 1;  // the result with the largest logit of each row, with the logarithms of its sums
  if (is<ops::CrossEntropy>(node.op) || is<Joined>(node.op)) {
    const bool is_gradient = is<Joined>(node.op) && k == Joined::kGradient;
    const double weight = is_gradient ? largest_of(node, node.inputs.subspan(Joined::kBaseInputs))
                                      : std::max(1.0, largest_of(node, node.inputs.subspan(1, 1)));
    return weight * std::max(1.0, node.largest(node.results[kOfRows]));
  }
  if (is<ops::SoftmaxBackward>(node.op)) return largest_of(node, node.inputs.first(1));
  if (is<ops::Attention>(node.op)) {
    const double operands = largest_of(node, node.inputs.first(kMasked));
    return k == 0 ? std::max(operands, node.largest(node.results[kOfRows]) * node.largest(node.inputs[2])) : operands;
  }
  const bool is_gradient = is<ops::AttentionBackwardQuery>(node.op) || is<ops::AttentionBackwardKeyValue>(node.op);
  return largest_of(node, is_gradient ? node.inputs.first(kMaskedBackward) : node.inputs);
}

}  // namespace concord
