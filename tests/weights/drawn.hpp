// Weights and inputs that Python and the tests draw alike: from Philox, by name (tests/goldens/names.py).
#pragma once

#include <cmath>
#include <span>
#include <string>

#include "concord/core/philox.hpp"
#include "concord_test.hpp"

namespace concord::test {

inline void draw_uniformly(std::span<float> values, const std::string& name, float low, float high) {
  const Philox random(7, philox_purpose(name));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = low + (high - low) * (static_cast<float>(random.word(i) >> 8) * 0x1p-24F);
  }
}

/// As drawn() of names.py.
[[nodiscard]] inline Tensor drawn(const std::string& name, const Shape& shape) {
  Tensor tensor(DType::f32, shape);
  const auto values = tensor.values<float>();
  if (name.ends_with("running_var")) {
    draw_uniformly(values, name, 0.5F, 1.5F);
  } else if (shape.rank() > 1) {
    const auto fan = static_cast<double>(shape.elements() / shape[0]);
    const auto bound = static_cast<float>(std::sqrt(3 / fan));
    draw_uniformly(values, name, -bound, bound);
  } else {
    const bool scale = name.ends_with("weight");
    draw_uniformly(values, name, scale ? 0.5F : -0.1F, scale ? 1.5F : 0.1F);
  }
  return tensor;
}

}  // namespace concord::test
