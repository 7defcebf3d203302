// Metric: a user's measure of a network, computed on the device during evaluations.
#pragma once

#include <concepts>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "concord/core/export.hpp"
#include "concord/graph/values.hpp"

namespace CONCORD_PUBLIC concord {

/// A function of the output (in evaluation mode) and the target of one batch of N samples; or, as
/// `Value(const Values& outputs, const Values& targets)`, of all outputs and targets of a network that has several. Its
/// result is either
/// - a value for each sample, [N, …], of any type: the metric is the mean of all values; or
/// - one number, joined over batches like a loss (concord::Loss): a mean over samples, or the result of
///   `loss::weighted_mean(sum, weight)` or `loss::total(sum)`. So every loss is a metric.
/// In both cases the metric of a data set equals that of all samples in one batch. A copy is the same metric: an
/// evaluation with a copy compiles nothing again.
class Metric {
 public:
  Metric() = default;
  template <class Function>
  requires(!std::same_as<Function, Metric> &&
           !std::is_invocable_r_v<Value, const Function&, const Values&, const Values&> &&
           std::is_invocable_r_v<Value, const Function&, Value, Value>) Metric(Function function)
      : Metric(of_one(std::move(function))) {}
  template <class Function>
  requires(!std::same_as<Function, Metric> &&
           std::is_invocable_r_v<Value, const Function&, const Values&, const Values&>) Metric(Function function)
      : function_(std::make_shared<const Stored>(std::move(function))) {}

  /// Throws ArgumentError if the metric takes one output and one target, and there are several.
  [[nodiscard]] Value operator()(const Values& outputs, const Values& targets) const {
    return (*function_)(outputs, targets);
  }
  /// False if the metric is empty.
  [[nodiscard]] explicit operator bool() const { return function_ && *function_; }
  friend bool operator==(const Metric&, const Metric&) = default;

 private:
  using Stored = std::function<Value(const Values&, const Values&)>;
  static Stored of_one(std::function<Value(Value, Value)> function) {
    if (!function) return {};
    return [function = std::move(function)](const Values& outputs, const Values& targets) {
      return function(outputs.only(), targets.only());
    };
  }
  std::shared_ptr<const Stored> function_;
};

using NamedMetrics = std::map<std::string, Metric>;

}  // namespace concord
