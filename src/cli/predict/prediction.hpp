// Predictions: the likeliest classes of samples, and how they are printed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "concord/concord.hpp"

namespace concord::cli {

/// A class and its probability.
struct Likely {
  std::size_t index = 0;
  double probability = 0;
};

/// What a network for classes gives.
enum class Scores : std::uint8_t { logits, probabilities };

/// The k likeliest classes, of logits by their softmax; the likeliest first, of equal ones the lower index.
[[nodiscard]] std::vector<Likely> likeliest(std::span<const float> scores, std::size_t k, Scores kind = Scores::logits);

/// The prediction for one of several labels or targets.
struct Answer {
  std::string label;  // the name of its column
  std::string name;   // of the likeliest class; empty: a number
  double probability = 0, number = 0;
};

struct Prediction {
  std::string sample;                               // a file, or the number of a sample
  std::vector<Likely> classes = {};                 // empty: see `numbers` and `error`
  std::optional<std::size_t> label = std::nullopt;  // where it is known
  std::string error = {};                           // why there is no prediction
  std::optional<std::int64_t> row = std::nullopt;   // of a data set, if `sample` is its number
  std::vector<float> numbers = {};                  // of a network that predicts numbers, one for each name
  std::vector<Answer> answers = {};                 // of a network for several labels
  std::optional<std::string> text = std::nullopt, label_text = std::nullopt;  // a transcript
};

/// The name of a class, or its index.
[[nodiscard]] std::string class_name(const std::vector<std::string>& names, std::size_t index);

// As text. With k classes a sample the columns of class and probability come k times.
[[nodiscard]] std::string prediction_table(const std::vector<Prediction>& predictions,
                                           const std::vector<std::string>& names);
/// RFC 4180, with a header.
[[nodiscard]] std::string prediction_csv(const std::vector<Prediction>& predictions,
                                         const std::vector<std::string>& names);
[[nodiscard]] std::string prediction_json(const std::vector<Prediction>& predictions,
                                          const std::vector<std::string>& names);

}  // namespace concord::cli
