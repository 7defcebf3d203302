// CTC in double precision by its usual recursion: what the operator and networks that are trained by it are held
// against.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/op_test.hpp"

namespace concord::test {

using Labels = std::vector<std::int64_t>;

/// −log p(target) of sample n of log-probabilities (T, N, C), of which the first `steps` count.
inline double by_recursion(const Array& log_p, std::int64_t n, std::int64_t steps, const Labels& target,
                           std::int64_t blank) {
  const auto places = static_cast<std::int64_t>(2 * target.size() + 1);
  const auto at = [&](std::int64_t s) { return s % 2 == 0 ? blank : target[static_cast<std::size_t>(s / 2)]; };
  std::vector<double> alpha(static_cast<std::size_t>(places), 0.0);
  for (std::int64_t t = 0; t < steps; ++t) {
    std::vector<double> next(alpha.size());
    for (std::int64_t s = 0; s < places; ++s) {
      const auto i = static_cast<std::size_t>(s);
      double sum = t == 0 ? (s < 2 ? 1 : 0) : alpha[i];
      if (t > 0 && s > 0) sum += alpha[i - 1];
      if (t > 0 && s > 1 && at(s) != blank && at(s) != at(s - 2)) sum += alpha[i - 2];
      next[i] = sum * std::exp(log_p.at({t, n, at(s)}));
    }
    alpha = std::move(next);
  }
  return -std::log(alpha.back() + (places > 1 ? alpha[alpha.size() - 2] : 0));
}

/// Logits (…, C) as log-probabilities.
inline Array log_softmaxed(Array logits) {
  const auto classes = static_cast<std::size_t>(logits.shape[-1]);
  for (std::size_t row = 0; row < logits.values.size(); row += classes) {
    const auto begin = logits.values.begin() + static_cast<std::ptrdiff_t>(row);
    const auto end = begin + static_cast<std::ptrdiff_t>(classes);
    const double most = *std::max_element(begin, end);
    double sum = 0;
    for (auto it = begin; it != end; ++it) sum += std::exp(*it - most);
    for (auto it = begin; it != end; ++it) *it -= most + std::log(sum);
  }
  return logits;
}

}  // namespace concord::test
