// Numbers of the random stream (ops/random.hpp). Uniform numbers are equal bits on every device, made by one rounding
// in f32, and so have no reference here.
#include "concord/ops/random.hpp"

#include <shared/attention_dropout.h>

#include <cmath>
#include <numbers>

#include "concord/compare/reference64/families.hpp"

namespace concord::float64 {
namespace {

struct Stream {
  std::uint64_t seed;
  std::uint32_t step, purpose;
  [[nodiscard]] double uniform(std::size_t index) const { return philox_uniform(index, purpose, step, seed); }
};

Stream stream_of(const Tensor& state, std::uint32_t purpose) {
  const auto words = state.values<std::int32_t>();
  const auto word = [&](std::size_t i) { return static_cast<std::uint32_t>(words[i]); };
  return {word(0) | std::uint64_t{word(1)} << 32, word(2), purpose};
}

Values attention_factors(const ops::Random& op, const ReplayedNode& node) {
  const auto words = node.inputs[0].values<std::int32_t>();
  const auto word = [](auto x) { return static_cast<std::uint32_t>(x); };
  const attention_dropout dropout =
      dropout_of(word(words[0]), word(words[1]), word(words[2]), op.purpose(), word(op.a()));
  const std::uint32_t queries = word(node.results[0].shape()[2]), keys = word(node.results[0].shape()[3]);
  Values result = zeros(node.results[0]);
  for (std::size_t i = 0; i < result.size(); ++i) {
    const std::size_t row = i / keys;
    const bool is_kept = keeps_weight(dropout, word(row / queries), word(row % queries), word(i % keys), queries);
    result[i] = is_kept ? static_cast<double>(op.b()) : 0;
  }
  return result;
}

}  // namespace

Results random(const ReplayedNode& node) {
  const auto* op = dynamic_cast<const ops::Random*>(node.op);
  using enum ops::Distribution;
  if (op == nullptr || op->distribution() == uniform) return {};
  if (op->distribution() == attention) return {{attention_factors(*op, node)}};
  const Stream stream = stream_of(node.inputs[0], op->purpose());
  const double a = op->a(), b = op->b();
  Values result = zeros(node.results[0]);
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (op->distribution() == bernoulli) {
      result[i] = stream.uniform(i) < a ? b : 0;
    } else {  // Box and Muller, "A Note on the Generation of Random Normal Deviates", 1958
      const double radius = std::sqrt(-2 * std::log1p(-stream.uniform(2 * i)));
      result[i] = a + b * radius * std::cos(2 * std::numbers::pi * stream.uniform(2 * i + 1));
    }
  }
  return {{std::move(result)}};
}

}  // namespace concord::float64
