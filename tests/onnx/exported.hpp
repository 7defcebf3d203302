// What the tests of the export share: inputs, small networks, and how far results are apart.
#pragma once

#include <algorithm>
#include <cmath>

#include "concord/core/philox.hpp"
#include "concord_test.hpp"

namespace concord::test {

inline Tensor random_input(const TensorSpec& spec, int classes = 8) {
  Tensor tensor(spec);
  const Philox numbers(7, philox_purpose("export test"));
  for (std::int64_t i = 0; i < tensor.elements(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    const float u = numbers.uniform(static_cast<std::uint64_t>(i));
    if (spec.dtype == DType::f32) tensor.values<float>()[at] = 4 * u - 2;
    if (spec.dtype == DType::i32) {
      tensor.values<std::int32_t>()[at] = static_cast<std::int32_t>(u * static_cast<float>(classes));
    }
  }
  return tensor;
}

inline double number_at(const Tensor& tensor, std::size_t i) {
  if (tensor.dtype() == DType::f32) return static_cast<double>(tensor.values<float>()[i]);
  return tensor.values<std::int32_t>()[i];
}

/// The largest difference relative to the largest number.
inline double difference(const Tensor& a, const Tensor& b) {
  REQUIRE(a.spec() == b.spec());
  double most = 0, largest = 1e-30;
  for (std::size_t i = 0; i < static_cast<std::size_t>(a.elements()); ++i) {
    const double x = number_at(a, i), y = number_at(b, i);
    if (std::isfinite(y)) largest = std::max(largest, std::abs(y));
    if (x == y) continue;
    most = std::isfinite(x - y) ? std::max(most, std::abs(x - y)) : 1e30;
  }
  return most / largest;
}

inline nn::Sequential two_layers() {
  nn::Sequential net;
  net.push(nn::Linear(6, 5)).push(nn::Tanh{}).push(nn::Linear(5, 3));
  return net;
}

}  // namespace concord::test
