// Softmax and cross-entropy, and the gradient of softmax.
#include "concord/ops/softmax.hpp"

#include <numeric>

#include "concord/onnx/export/rules.hpp"

namespace concord::onnx {
namespace {

void write_softmax_backward(NodeExport& x) {
  const auto& op = x.op<ops::SoftmaxBackward>();
  const std::vector<std::int64_t> axis{static_cast<std::int64_t>(op.axis())};
  if (op.log()) {
    const std::string sum = x.reduce("ReduceSum", x.in(0), axis);
    x.bind(0, x.subtract(x.in(0), x.multiply(x.add("Exp", {x.in(1)}), sum)));
    return;
  }
  const std::string sum = x.reduce("ReduceSum", x.multiply(x.in(0), x.in(1)), axis);
  x.bind(0, x.multiply(x.in(1), x.subtract(x.in(0), sum)));
}

/// logits (N, C), target (N) or (N, C) → loss, largest, Σ exp(logit − largest), all (N). A class index outside [0, C)
/// gives the loss 0 here, not NaN.
void write_cross_entropy(NodeExport& x) {
  const float smoothing = x.op<ops::CrossEntropy>().label_smoothing();
  const std::int64_t classes = x.in_sizes(0)[1].number;
  GraphWriter& w = x.writer();
  const std::string largest = x.reduce("ReduceMax", x.in(0), {1});
  const std::string shifted = x.subtract(x.in(0), largest);
  const std::string total = x.reduce("ReduceSum", x.add("Exp", {shifted}), {1});
  const std::string log_probability = x.subtract(shifted, x.add("Log", {total}));
  std::string target = x.in(1);
  if (x.node().inputs[1].dtype() == DType::i32) {
    std::vector<float> numbers(static_cast<std::size_t>(classes));
    std::iota(numbers.begin(), numbers.end(), 0.0F);
    const std::string column = x.unsqueeze(x.cast(target, ElementType::f32), {1});
    target = x.cast(x.add("Equal", {column, w.tensor(Shape{classes}, numbers)}), ElementType::f32);
  }
  if (smoothing != 0) {
    const float spread = smoothing / static_cast<float>(classes);
    target = x.add_to(x.multiply(target, 1 - smoothing), w.number(spread));
  }
  // What has no share does not count, even if its logarithm is −∞.
  const std::string term =
      x.add("Where", {x.add("Equal", {target, w.number(0)}), w.number(0), x.multiply(target, log_probability)});
  x.bind(0, x.add("Neg", {x.squeeze(x.reduce("ReduceSum", term, {1}), {1})}));
  if (x.is_used(1)) x.bind(1, x.squeeze(largest, {1}));
  if (x.is_used(2)) x.bind(2, x.squeeze(total, {1}));
}

}  // namespace

void add_softmax_rules(Rules& rules) {
  rules[typeid(ops::Softmax)] = [](NodeExport& x) {
    const auto& op = x.op<ops::Softmax>();
    x.bind(0, x.add(op.log() ? "LogSoftmax" : "Softmax", {x.in(0)},
                    {whole("axis", static_cast<std::int64_t>(op.axis()))}));
  };
  rules[typeid(ops::SoftmaxBackward)] = write_softmax_backward;
  rules[typeid(ops::CrossEntropy)] = write_cross_entropy;
}

}  // namespace concord::onnx
