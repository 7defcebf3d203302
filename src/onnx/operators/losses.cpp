// Losses of ONNX: NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss.
#include "concord/core/check.hpp"
#include "concord/onnx/operators/pointwise_call.hpp"
#include "concord/onnx/table.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/gather.hpp"
#include "concord/ops/rearrange.hpp"
#include "concord/ops/reduce.hpp"
#include "concord/ops/softmax.hpp"

namespace concord::onnx {
namespace {

// log-probabilities (N, C, d…), target (N, d…), weights (C): the loss by the attribute `reduction`.
Value likelihood_loss(const Call& call, const Value& log_probabilities) {
  const Value target = unsqueeze(call.value(1), 1);  // (N, 1, d…)
  const auto classes = static_cast<int>(log_probabilities.shape().rank()) - 2;
  const Scalar is_target = scalar::equal(scalar::coordinate(classes), scalar::input(1));
  const Value picked =
      pointwise("picked", {log_probabilities, target}, scalar::select(is_target, -scalar::input(0), 0.0F));
  Value losses = sum(picked, {1});  // (N, d…)
  const Attribute* const ignored = call.find("ignore_index");
  const Scalar counts =
      ignored == nullptr ? Scalar(1.0F) : 1.0F - scalar::equal(scalar::input(0), static_cast<float>(ignored->i));
  Value weights;
  if (call.has(2)) {
    const Value of_class = gather(call.number_value(2), call.value(1));
    weights = pointwise("weights", {call.value(1), of_class}, scalar::select(counts, scalar::input(1), 0.0F));
  } else if (ignored != nullptr) {
    weights = pointwise("weights", {call.value(1)}, counts);
  }
  if (weights) {
    losses =
        pointwise("weighted", {losses, weights},
                  scalar::select(scalar::equal(scalar::input(1), 0.0F), 0.0F, scalar::input(0) * scalar::input(1)));
  }
  const std::string reduction = call.text("reduction", "mean");
  if (reduction == "none") return losses;
  if (reduction == "sum") return sum(losses);
  CONCORD_CHECK(reduction == "mean", NotSupported, "the reduction '{}' is unknown", reduction);
  return weights ? sum(losses) / sum(weights) : mean(losses);
}

void negative_log_likelihood(Call& call) { call.set(0, likelihood_loss(call, call.number_value(0)), call.type(0)); }

void softmax_cross_entropy(Call& call) {
  const Value log_probabilities = log_softmax(call.number_value(0), 1);
  call.set(0, likelihood_loss(call, log_probabilities), call.type(0));
  if (call.wants(1)) call.set(1, log_probabilities, call.type(0));
}

}  // namespace

void add_losses(Table& table) {
  table.add("NegativeLogLikelihoodLoss", {.since = 12, .run = negative_log_likelihood});
  table.add("SoftmaxCrossEntropyLoss", {.since = 12, .run = softmax_cross_entropy});
}

}  // namespace concord::onnx
