// Distances of weights and perturbed weights.
#include "concord/compare/run/drift.hpp"

#include <algorithm>
#include <cmath>

#include "concord/core/philox.hpp"

namespace concord {

std::vector<std::string> trained_weights(const Graph& graph) {
  std::vector<std::string> names;
  for (const VariablePtr& variable : graph.variables()) {
    if (variable->trainable && variable->spec.dtype == DType::f32) names.push_back(variable->name);
  }
  return names;
}

double weight_distance(const Variables& weights, const Variables& expected, std::span<const std::string> names) {
  double difference = 0, norm = 0;
  for (const std::string& name : names) {
    const Tensor a = weights.read(name), b = expected.read(name);
    const auto x = a.values<float>(), y = b.values<float>();
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double base = y[i], part = static_cast<double>(x[i]) - base;
      difference += part * part;
      norm += base * base;
    }
  }
  return difference == 0 ? 0 : std::sqrt(difference / norm);
}

void perturb(Variables& weights, std::span<const std::string> names, std::uint64_t seed) {
  for (const std::string& name : names) {
    const Tensor before = weights.read(name);
    Tensor value = before.clone();
    // Numbers of their own: those of the name alone may have given the first weights.
    PhiloxSequence words(Philox(seed, philox_purpose("compare.perturb/" + name)));
    for (float& number : value.values<float>()) {
      number = std::nextafter(number, words.below(2) == 0 ? -INFINITY : INFINITY);
    }
    weights.write(name, value);
  }
}

bool is_drift_step(std::int64_t done, std::int64_t steps) {
  constexpr std::int64_t kMost = 64;
  return done == steps || done % std::max<std::int64_t>(1, steps / kMost) == 0;
}

}  // namespace concord
