// Objective: finding the output and the target of each loss.
#include "concord/train/objective.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>

#include "concord/core/check.hpp"
#include "concord/nn/class_axis.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/train/metrics.hpp"

namespace concord {
namespace {

/// The value of this name, or the one at this position if it has no name.
Value named_or_at(const Values& values, const std::string& name, std::size_t position, std::string_view what) {
  if (const Value found = values.find(name)) return found;
  if (position < values.size() && std::next(values.begin(), static_cast<std::ptrdiff_t>(position))->name.empty()) {
    return values[position];
  }
  throw ArgumentError(fmt::format("the objective needs {} '{}', but there are {}", what, name, values.names()));
}

const std::string& target_of(const OutputLoss& loss) { return loss.target.empty() ? loss.output : loss.target; }

/// The output and the target of a loss in a list.
std::pair<Value, Value> operands_of(const OutputLoss& loss, std::size_t position, const Values& outputs,
                                    const Values& targets) {
  return {named_or_at(outputs, loss.output, position, "the output"),
          named_or_at(targets, target_of(loss), position, "the labels")};
}

std::pair<Value, Value> only_pair(const Values& outputs, const Values& targets) {
  CONCORD_CHECK(outputs.size() == 1 && targets.size() == 1, ArgumentError,
                "one loss needs one output and one column of labels, but the network has {} output{} ({}) and the data "
                "set {} column{} of labels ({}); give a list of losses, {{{{\"output\", loss}}, …}}",
                outputs.size(), outputs.size() == 1 ? "" : "s", outputs.names(), targets.size(),
                targets.size() == 1 ? "" : "s", targets.names());
  return {outputs[0], targets[0]};
}

/// The accuracy of an output with class labels.
Value accuracy_of(const Loss& loss, Value outputs, Value labels) {
  // The loss is traced for what it says of the classes and the ignored labels; nothing else reads it.
  const std::optional<std::size_t> axis = loss::class_axis(outputs, labels.shape(), loss(outputs, labels));
  CONCORD_CHECK(
      axis, ArgumentError,
      "more than one dimension of the outputs {} may be the classes of labels {}, so the accuracy is undefined",
      outputs.shape().str(), labels.shape().str());
  return accuracy(outputs, labels, *axis);
}

}  // namespace

Objective::Objective(Loss loss) : is_single_(true) {
  if (!loss) return;
  function_ = [loss = std::move(loss)](const Values& outputs, const Values& targets) {
    const auto [output, target] = only_pair(outputs, targets);
    return loss(output, target);
  };
}

Objective::Objective(std::vector<OutputLoss> losses) : losses_(std::move(losses)) {
  CONCORD_CHECK(!losses_.empty(), ArgumentError, "an objective needs at least one loss");
  for (std::size_t i = 0; i < losses_.size(); ++i) {
    const OutputLoss& one = losses_[i];
    CONCORD_CHECK(one.loss && !one.output.empty(), ArgumentError,
                  "a loss of an objective needs the name of an output and a function; number {} ('{}') has not", i,
                  one.output);
    CONCORD_CHECK(std::isfinite(one.weight), ArgumentError, "the loss of '{}' has the weight {}", one.output,
                  one.weight);
    const auto loss_of = [one, i](const Values& outputs, const Values& targets) {
      const auto [output, target] = operands_of(one, i, outputs, targets);
      return one.loss(output, target);
    };
    const auto hits_of = [one, i](const Values& outputs, const Values& targets) {
      const auto [output, target] = operands_of(one, i, outputs, targets);
      return accuracy_of(one.loss, output, target);
    };
    const auto before = std::span(losses_).first(i);
    CONCORD_CHECK(std::ranges::find(before, one.output, &OutputLoss::output) == before.end(), ArgumentError,
                  "an objective has two losses of the output '{}'; add them in one function", one.output);
    values_.emplace_back(loss_of);
    accuracies_.emplace_back(hits_of);
  }
  function_ = [all = losses_](const Values& outputs, const Values& targets) {
    Value sum;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto [output, target] = operands_of(all[i], i, outputs, targets);
      const Value loss = all[i].loss(output, target);
      CONCORD_CHECK(loss && loss.shape().elements() == 1, ShapeError,
                    "the loss of '{}' must be one number, got {}; use Reduction::mean or sum", all[i].output,
                    loss ? loss.shape().str() : "nothing");
      const Value weighted = all[i].weight == 1 ? loss : all[i].weight * loss;
      sum = sum ? sum + weighted : weighted;
    }
    return sum;
  };
}

Value Objective::operator()(const Values& outputs, const Values& targets) const { return function_(outputs, targets); }

std::vector<std::pair<Value, Value>> Objective::pairs(const Values& outputs, const Values& targets) const {
  if (is_single_) return {only_pair(outputs, targets)};
  std::vector<std::pair<Value, Value>> all;
  for (std::size_t i = 0; i < losses_.size(); ++i) all.push_back(operands_of(losses_[i], i, outputs, targets));
  return all;
}

NamedMetrics Objective::metrics(const std::vector<ColumnSpec>& labels) const {
  NamedMetrics all;
  for (std::size_t i = 0; i < losses_.size(); ++i) {
    const std::string& output = losses_[i].output;
    all.emplace(output + ".loss", values_[i]);
    auto column = std::ranges::find(labels, target_of(losses_[i]), &ColumnSpec::name);
    if (column == labels.end() && i < labels.size() && labels[i].name.empty()) {
      column = labels.begin() + static_cast<std::ptrdiff_t>(i);
    }
    if (column != labels.end() && column->classes > 0) all.emplace(output + ".accuracy", accuracies_[i]);
  }
  return all;
}

}  // namespace concord
