// What tests against recorded PyTorch runs share: reading them, and comparing values.
#pragma once

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "concord_test.hpp"

namespace concord::test {

/// A file of tests/goldens.
[[nodiscard]] inline std::string golden_path(const std::string& name) {
  return (folder_of_tests() / "goldens" / name).string();
}

[[nodiscard]] inline nlohmann::json golden(const std::string& name) {
  std::ifstream file(golden_path(name));
  return nlohmann::json::parse(file);
}

[[nodiscard]] inline Tensor tensor_of(const Shape& shape, const nlohmann::json& numbers) {
  return Tensor::of<float>(shape, numbers.get<std::vector<float>>());
}

/// The largest difference of two lists, as a part of the largest value expected.
[[nodiscard]] inline double difference(std::span<const float> got, std::span<const float> expected) {
  if (got.size() != expected.size()) return INFINITY;
  double largest = 0, scale = 1e-30;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (!std::isfinite(got[i])) return INFINITY;
    largest = std::max(largest, std::abs(static_cast<double>(got[i]) - static_cast<double>(expected[i])));
    scale = std::max(scale, std::abs(static_cast<double>(expected[i])));
  }
  return largest / scale;
}

/// The Euclidean distance of two lists, as a part of the length expected: for values after many steps, of which a few
/// may differ more because a rectifier or a maximum fell out the other way.
[[nodiscard]] inline double distance(std::span<const float> got, std::span<const float> expected) {
  if (got.size() != expected.size()) return INFINITY;
  double squares = 0, length = 1e-30;
  for (std::size_t i = 0; i < got.size(); ++i) {
    squares += std::pow(static_cast<double>(got[i]) - static_cast<double>(expected[i]), 2);
    length += std::pow(static_cast<double>(expected[i]), 2);
  }
  return std::sqrt(squares / length);
}

[[nodiscard]] inline double difference(const Tensor& got, const nlohmann::json& expected) {
  return difference(got.values<float>(), expected.get<std::vector<float>>());
}

}  // namespace concord::test
