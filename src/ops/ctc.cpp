// Ctc: shape rule and gradient.
#include "concord/ops/ctc.hpp"

#include "concord/core/check.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/rules.hpp"

namespace concord {
namespace ops {

std::vector<TensorSpec> Ctc::infer(std::span<const TensorSpec> inputs) const {
  expect_inputs(name(), inputs, 4);
  const TensorSpec& src = inputs[0];
  expect_type(name(), "log_probabilities", src, DType::f32);
  CONCORD_CHECK(src.shape.rank() == 3, ShapeError, "ctc: log_probabilities must be (T, N, C), got {}", src.shape.str());
  expect_not_empty(name(), "log_probabilities", src.shape);
  const Shape samples{src.shape[1]};
  CONCORD_CHECK(inputs[1].dtype == DType::i32 && inputs[1].shape.rank() == 2 && inputs[1].shape[0] == samples[0],
                ShapeError, "ctc: for log_probabilities {} the targets must be i32 [{}, S], got {}", src.shape.str(),
                samples[0], inputs[1].str());
  expect_spec(name(), "input_lengths", inputs[2], DType::i32, samples);
  expect_spec(name(), "target_lengths", inputs[3], DType::i32, samples);
  CONCORD_CHECK(blank_ >= 0 && blank_ < src.shape[2], ArgumentError, "ctc: the blank {} is not one of {} classes",
                blank_, src.shape[2]);
  return {{DType::f32, samples}, src};
}

std::vector<Value> Ctc::gradient(const Node& node, std::span<const Value> diff_dst,
                                 const std::vector<bool>& wanted) const {
  CONCORD_CHECK(!diff_dst[1], NotSupported, "{}: no gradient through the occupancy of ctc", node.name);
  std::vector<Value> diffs = no_gradients(node);
  if (!diff_dst[0] || !wanted[0]) return diffs;
  const Value diff = reshape(diff_dst[0], Shape{1, node.inputs[0].shape()[1], 1});
  diffs[0] =
      pointwise("ctc_backward", {diff, output_of(node, 1)},
                scalar::select(scalar::equal(scalar::input(1), 0.0F), 0.0F, -(scalar::input(0) * scalar::input(1))));
  return diffs;
}

Cost Ctc::cost(std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs) const {
  Cost cost = Operator::cost(inputs, outputs);
  const double places = static_cast<double>(2 * inputs[1].shape[1] + 1);
  const double steps = static_cast<double>(inputs[0].shape[0] * inputs[0].shape[1]);
  cost.flops = steps * places * 20;  // two recursions of three exponentials and a logarithm each
  return cost;
}

std::string Ctc::attributes() const { return fmt::format("blank {}, zero_infinity {}", blank_, zero_infinity_); }

}  // namespace ops

Value ctc(Value log_probabilities, Value targets, Value input_lengths, Value target_lengths, std::int32_t blank,
          bool zero_infinity) {
  return log_probabilities.graph().add(std::make_shared<ops::Ctc>(blank, zero_infinity),
                                       {log_probabilities, targets, input_lengths, target_lengths});
}

}  // namespace concord
