// The operators without a gradient of their gradient, and what has one.
#include "concord/ops/second_gradient.hpp"

#include <array>
#include <utility>

namespace concord::ops {
namespace {

using Advice = std::pair<std::string_view, std::string_view>;

constexpr std::string_view kAttention =
    "write the attention as a composition: scores = matmul(q, k, false, true) * scale + mask, e = exp(scores - "
    "stop_gradient(reduce_max(scores, {-1}, true))), matmul(e / sum(e, {-1}, true), v)";

constexpr std::array<Advice, 2> kAdvice{{
    {"attention_backward_query", kAttention},
    {"attention_backward_key_value", kAttention},
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
