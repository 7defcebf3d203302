// A formula of the results of convolutions, taken apart into sums in which each result has a factor by channel and
// what is added by channel is one operand (compile/fold_factors).
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "concord/graph/expression.hpp"

namespace concord {

/// Takes a formula apart and writes it without the factors. The formula outlives it.
class Factors {
 public:
  /// The inputs of the formula, of which there are `inputs`: those that convolutions make, and those that have a value
  /// for each channel.
  Factors(int inputs, std::set<int> results, std::set<int> by_channel)
      : inputs_(inputs), is_result_(std::move(results)), is_by_channel_(std::move(by_channel)) {}

  /// The formula for convolutions whose weights have the factors; shift k is its input `inputs` + k.
  [[nodiscard]] Scalar without(const Scalar& formula);
  /// The factor of each result that has one by channel.
  [[nodiscard]] std::map<int, Scalar> factors() const;
  [[nodiscard]] const std::vector<Scalar>& shifts() const { return shifts_; }
  /// Whether a result has two different factors, or one that is the same for all channels, so that the formula without
  /// them means something else or saves nothing; or whether there are too many terms.
  [[nodiscard]] bool is_useless() const;

 private:
  /// Σ factor·result + Σ others + shift. A factor without a formula is 1. `shift` has one value for each channel.
  struct Sum {
    std::map<int, std::optional<Scalar>> results;  // by the input that a convolution makes
    std::vector<Scalar> others;
    std::optional<Scalar> shift;
  };
  /// What is known of parts of the formula. Formulas share their parts, so that each is asked once.
  template <class Result>
  using Known = std::unordered_map<const Scalar::Node*, Result>;

  [[nodiscard]] bool reads_result(const Scalar& formula);
  [[nodiscard]] bool is_by_channel(const Scalar& formula);
  [[nodiscard]] std::string text_of(const std::optional<Scalar>& factor) const;
  [[nodiscard]] int place_of(const Scalar& shift);
  [[nodiscard]] Scalar new_without(const Scalar& formula);
  [[nodiscard]] Sum sum_of(const Scalar& formula);
  [[nodiscard]] Sum new_sum_of(const Scalar& formula);
  [[nodiscard]] static Sum times(Sum sum, const Scalar& number);
  [[nodiscard]] Sum plus(Sum a, const Sum& b);

  int inputs_;
  std::set<int> is_result_, is_by_channel_;
  std::map<int, std::optional<Scalar>> factors_;  // by result
  std::vector<Scalar> shifts_;
  std::map<std::string, int> places_;  // of the shifts
  Known<bool> reads_result_, has_channels_;
  Known<Scalar> without_;
  Known<Sum> sums_;
  bool clash_ = false;
};

}  // namespace concord
