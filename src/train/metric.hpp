// Metric: a number of one's own about a network, computed on the device by evaluations.
#pragma once

#include <concepts>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "concord/core/export.hpp"
#include "concord/graph/graph.hpp"

namespace CONCORD_PUBLIC concord {

/// A function of the network's outputs, those of evaluation, and the targets, of one batch of N samples. Its result is
/// - a value for each sample, [N, …], of any type: the metric is the mean of them all;
/// - or one number, which batches are joined by as those of a loss are (concord::Loss): a mean over samples, or what
///   `loss::weighted_mean(sum, weight)` or `loss::total(sum)` says. So each loss is a metric.
/// Either way that of a data set is that of all samples as one batch, however they were cut.
/// Copies are one metric: an evaluation with a copy of an earlier one's compiles nothing anew.
class Metric {
 public:
  Metric() = default;
  template <class Function>
  requires(!std::same_as<Function, Metric> && std::is_invocable_r_v<Value, const Function&, Value, Value>)
      Metric(Function function)
      : function_(std::make_shared<const Stored>(std::move(function))) {}

  [[nodiscard]] Value operator()(Value outputs, Value targets) const { return (*function_)(outputs, targets); }
  /// False for none.
  [[nodiscard]] explicit operator bool() const { return function_ && *function_; }
  friend bool operator==(const Metric&, const Metric&) = default;

 private:
  using Stored = std::function<Value(Value, Value)>;
  std::shared_ptr<const Stored> function_;
};

using NamedMetrics = std::map<std::string, Metric>;

}  // namespace concord
