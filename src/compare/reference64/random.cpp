// Numbers of the random stream (ops/random.hpp). Uniform numbers are equal bits on every device, made by one rounding
// in f32, and so have no reference here.
#include "concord/ops/random.hpp"

#include <shared/philox.h>

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

}  // namespace

Results random(const ReplayedNode& node) {
  const auto* op = dynamic_cast<const ops::Random*>(node.op);
  if (op == nullptr || op->distribution() == ops::Distribution::uniform) return {};
  const Stream stream = stream_of(node.inputs[0], op->purpose());
  const double a = op->a(), b = op->b();
  Values result = zeros(node.results[0]);
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (op->distribution() == ops::Distribution::bernoulli) {
      result[i] = stream.uniform(i) < a ? b : 0;
    } else {  // Box and Muller, "A Note on the Generation of Random Normal Deviates", 1958
      const double radius = std::sqrt(-2 * std::log1p(-stream.uniform(2 * i)));
      result[i] = a + b * radius * std::cos(2 * std::numbers::pi * stream.uniform(2 * i + 1));
    }
  }
  return {{std::move(result)}};
}

}  // namespace concord::float64
