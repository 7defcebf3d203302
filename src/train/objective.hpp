// Objective: what a training minimises: one loss, a weighted sum of the losses of several outputs, or any function of
// all outputs and targets.
#pragma once

#include <concepts>
#include <functional>
#include <initializer_list>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "concord/core/export.hpp"
#include "concord/data/dataset.hpp"
#include "concord/graph/values.hpp"
#include "concord/nn/loss.hpp"
#include "concord/train/metric.hpp"

namespace CONCORD_PUBLIC concord {

/// The loss of one output of a network that has several.
struct OutputLoss {
  std::string output;       // the name that forward_values gives it
  Loss loss;                // of this output and its target
  float weight = 1;         // of the loss in the sum
  std::string target = {};  // the column of labels; empty: that with the name of the output
};

/// What a Trainer minimises. It is made from
/// - a Loss, for a network with one output and a data set with one column of labels: `loss::cross_entropy`;
/// - a list of OutputLoss: `{{"class", loss::cross_entropy}, {"box", loss::smooth_l1, 0.5F}}`. Evaluations then also
///   report "class.loss" and "box.loss" among their named metrics, without the weights, and "class.accuracy" if the
///   column of labels has classes;
/// - a function of all outputs and targets, `Value(const Values& outputs, const Values& targets)`, for losses that join
///   them.
/// How it divides the losses of several batches follows from its terms (concord::Loss).
class Objective {
 public:
  using Function = std::function<Value(const Values& outputs, const Values& targets)>;

  Objective() = default;
  template <class F>
  requires(!std::same_as<std::remove_cvref_t<F>, Objective> &&
           !std::is_invocable_r_v<Value, const F&, const Values&, const Values&> &&
           std::is_invocable_r_v<Value, const F&, Value, Value>) Objective(F loss)
      : Objective(Loss(std::move(loss))) {}
  template <class F>
  requires(!std::same_as<std::remove_cvref_t<F>, Objective> &&
           std::is_invocable_r_v<Value, const F&, const Values&, const Values&>) Objective(F function)
      : function_(std::move(function)) {}
  Objective(Loss loss);
  /// Throws ArgumentError for no loss, an empty loss, an output named twice, or a weight that is not finite.
  Objective(std::vector<OutputLoss> losses);
  Objective(std::initializer_list<OutputLoss> losses) : Objective(std::vector<OutputLoss>(losses)) {}

  /// Throws ArgumentError if an output or a target that it needs is missing.
  [[nodiscard]] Value operator()(const Values& outputs, const Values& targets) const;
  /// False if it has no function.
  [[nodiscard]] explicit operator bool() const { return bool(function_); }
  /// The output and the target of each loss; none for a function of all of them. Throws as the call.
  [[nodiscard]] std::vector<std::pair<Value, Value>> pairs(const Values& outputs, const Values& targets) const;
  /// Whether it was made from one Loss, so that there is one output and one target.
  [[nodiscard]] bool is_single() const { return is_single_; }
  /// The losses of a list; else none.
  [[nodiscard]] const std::vector<OutputLoss>& losses() const { return losses_; }
  /// The metrics that a list of losses adds to evaluations of a data set with these columns of labels.
  [[nodiscard]] NamedMetrics metrics(const std::vector<ColumnSpec>& labels) const;

 private:
  Function function_;
  bool is_single_ = false;
  std::vector<OutputLoss> losses_;
  std::vector<Metric> values_, accuracies_;  // of each; made once, because a copy of a Metric is the same metric
};

}  // namespace concord
