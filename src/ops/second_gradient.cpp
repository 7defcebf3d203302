// The operators without a gradient of their gradient, and what has one.
#include "concord/ops/second_gradient.hpp"

#include <array>
#include <utility>

namespace concord::ops {
namespace {

using Advice = std::pair<std::string_view, std::string_view>;

constexpr std::string_view kNorm =
    "write the normalisation as a composition: with d = x - mean(x, axes, true), d / sqrt(mean(square(d), axes, true) "
    "+ "
    "epsilon), times scale plus shift";
constexpr std::string_view kAttention =
    "write the attention as a composition: scores = matmul(q, k, false, true) * scale + mask, e = exp(scores - "
    "stop_gradient(reduce_max(scores, {-1}, true))), matmul(e / sum(e, {-1}, true), v)";

// The longest names first where one begins another.
constexpr std::array<Advice, 12> kAdvice{{
    {"softmax_backward",
     "write the softmax as a composition: with e = exp(x - stop_gradient(reduce_max(x, {axis}, true))), e / sum(e, "
     "{axis}, true)"},
    {"log_softmax_backward",
     "write the log-softmax as a composition: with d = x - stop_gradient(reduce_max(x, {axis}, true)), d - "
     "log(sum(exp(d), {axis}, true))"},
    {"cross_entropy",
     "write the loss as a composition: with d = logits - stop_gradient(reduce_max(logits, {1}, true)), "
     "-mean(gather_along(d - log(sum(exp(d), {1}, true)), labels, 1)) of labels i32 (N, 1)"},
    {"batch_norm", kNorm},
    {"batch_norm_backward", kNorm},
    {"row_norm", kNorm},
    {"row_norm_backward", kNorm},
    {"row_norm_rms",
     "write the normalisation as a composition: x / sqrt(mean(square(x), axes, true) + epsilon), times scale"},
    {"row_norm_rms_backward",
     "write the normalisation as a composition: x / sqrt(mean(square(x), axes, true) + epsilon), times scale"},
    {"attention_backward_query", kAttention},
    {"attention_backward_key_value", kAttention},
    {"max_unpool_backward",
     "write the unpooling as scatter_add_along over the flattened pixels, whose gradients have any order"},
}};

constexpr std::string_view kRecurrent =
    "write the layer step by step: of slices of the sequence, matmul, sigmoid and tanh, as nn::LSTMCell, nn::GRUCell "
    "and "
    "nn::RNNCell do one step";

}  // namespace

std::string instead_of(std::string_view op) {
  for (const auto& [name, advice] : kAdvice) {
    if (name == op) return std::string(advice);
  }
  if (op.starts_with("recurrent")) return std::string(kRecurrent);
  if (op == "attention") return std::string(kAttention);
  return "use another loss, or hide this part from the gradient with stop_gradient; pointwise functions, sums, matrix "
         "multiplications, convolutions and copies have gradients of any order";
}

}  // namespace concord::ops
