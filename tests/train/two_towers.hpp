// A network with three inputs and two losses, and its data.
#pragma once

#include "train/small_training.hpp"

namespace concord::test {

/// Classes and a number from a vector and a sequence whose end is padding.
struct TwoTowers : nn::Module {
  nn::Linear vector{6, 8}, word{4, 8}, head{8, 3}, number{8, 1};
  nn::MultiheadAttention attention{8, 2};
  [[nodiscard]] Children children() override {
    return {{"vector", &vector}, {"word", &word}, {"attention", &attention}, {"head", &head}, {"number", &number}};
  }
  [[nodiscard]] std::vector<std::string> input_names() const override { return {"vector", "words", "lengths"}; }
  [[nodiscard]] Values forward_values(const Values& in) override {
    const Value read = attention(word(in["words"]), {.lengths = in["lengths"]});
    const Value both = relu(vector(in["vector"]) + mean(read, {1}));
    return {{"class", head(both)}, {"number", number(both)}};
  }
};

inline Objective two_losses() { return {{"class", loss::cross_entropy}, {"number", loss::mse, 0.5F}}; }

/// A column of labels f32 [n, 1]: the sum of the first two features.
inline Dataset two_columns(std::int64_t n = 40) {
  const Dataset vectors = small_data(n), words = data::synthetic(Shape{5, 4}, 3, n, 1);
  Tensor lengths(DType::i32, {n}), numbers(DType::f32, {n, 1});
  for (std::int64_t i = 0; i < n; ++i) {
    const auto row = static_cast<std::size_t>(i);
    lengths.values<std::int32_t>()[row] = static_cast<std::int32_t>(1 + i % 5);
    numbers.values<float>()[row] =
        vectors.features.values<float>()[6 * row] + vectors.features.values<float>()[6 * row + 1];
  }
  return data::from_columns({{"vector", vectors.features}, {"words", words.features}, {"lengths", std::move(lengths)}},
                            {{"class", vectors.labels, 3}, {"number", std::move(numbers)}});
}

}  // namespace concord::test
