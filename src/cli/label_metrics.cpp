// R² comes from three means: of the squared error, and of the targets and their squares, which say how they scatter.
#include "concord/cli/label_metrics.hpp"

#include <fmt/format.h>

#include <cmath>

#include "concord/cli/label_outputs.hpp"
#include "concord/core/log.hpp"
#include "concord/ops/loss_terms.hpp"
#include "concord/ops/reduce.hpp"

namespace concord::cli {
namespace {

constexpr std::int32_t kMostClasses = 256;  // of masks: each is a metric

std::string error_of(const std::string& name) { return "mean absolute error of " + name; }
std::string squared_error_of(const std::string& name) { return "squared error of " + name; }
std::string mean_of(const std::string& name) { return "mean of " + name; }
std::string square_of(const std::string& name) { return "mean square of " + name; }
std::string overlap_of(const std::string& name) { return "IoU of " + name; }

/// A function of column i of the targets and of what is predicted, which is the last output: (N, 1).
template <class Function>
Metric of_column(std::size_t i, Function function) {
  return [i, function](const Values& outputs, const Values& targets) {
    const auto column = [&](const Values& values) {
      const auto at = static_cast<std::int64_t>(i);
      return slice(values[values.size() - 1], 1, at, at + 1);
    };
    return function(column(outputs), column(targets));
  };
}

/// The places of class c in both over those in either, of the labels that count.
Metric overlap(std::int32_t c) {
  return [c](const Value& outputs, const Value& labels) {
    using scalar::equal;
    const Value predicted = argmax(outputs, 1), kept = find_kept_labels(labels.graph(), labels);
    std::vector<Value> inputs{predicted, labels};
    if (kept) inputs.push_back(reshape(kept, labels.shape()));
    const Scalar of_kept = kept ? scalar::input(2) : Scalar(1.0F);
    const Scalar is_predicted = equal(scalar::input(0), static_cast<float>(c)),
                 is_label = equal(scalar::input(1), static_cast<float>(c));
    const Value both = pointwise("both", inputs, is_predicted * is_label * of_kept);
    const Value either = pointwise("either", inputs, scalar::max(is_predicted, is_label) * of_kept);
    return loss::weighted_mean(sum(both), sum(either));
  };
}

}  // namespace

NamedMetrics errors_of_targets(const data::CsvEncoding& table) {
  NamedMetrics metrics;
  const std::vector<data::CsvEncoding::Label> targets = targets_of(table);
  for (std::size_t i = 0; i < targets.size(); ++i) {
    metrics.emplace(error_of(targets[i].name), of_column(i, [](Value y, Value t) { return abs(y - t); }));
  }
  return metrics;
}

LabelMetrics::LabelMetrics(const Samples& samples, const std::optional<data::CsvEncoding>& table) {
  if (table) {
    add_targets(*table);
    return;
  }
  const std::vector<ColumnSpec> labels = samples.label_specs();
  if (labels.size() != 1 || labels[0].spec.shape.rank() != 2) return;
  if (labels[0].classes > 0 && labels[0].classes <= kMostClasses) add_masks(samples, labels[0].classes);
}

void LabelMetrics::add_targets(const data::CsvEncoding& table) {
  parts_ = errors_of_targets(table);
  const std::vector<data::CsvEncoding::Label> targets = targets_of(table);
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const data::CsvEncoding::Label& target = targets[i];
    // In deviations, from about 0 on: the difference of the squares loses no digits.
    const auto scale = static_cast<float>(1 / target.deviation), mean = static_cast<float>(target.mean);
    targets_.push_back(target.name);
    parts_.emplace(squared_error_of(target.name),
                   of_column(i, [scale](Value y, Value t) { return square((y - t) * scale); }));
    parts_.emplace(mean_of(target.name), of_column(i, [=](Value, Value t) { return (t - mean) * scale; }));
    parts_.emplace(square_of(target.name), of_column(i, [=](Value, Value t) { return square((t - mean) * scale); }));
  }
}

void LabelMetrics::add_masks(const Samples& samples, std::int32_t classes) {
  for (std::int32_t c = 0; c < classes; ++c) {
    const auto i = static_cast<std::size_t>(c);
    classes_.push_back(i < samples.class_names.size() ? samples.class_names[i] : fmt::format("class {}", c));
    parts_.emplace(overlap_of(classes_.back()), overlap(c));
  }
}

void LabelMetrics::join(std::map<std::string, double>& metrics) const {
  const auto take = [&](const std::string& name) { return metrics.extract(name).mapped(); };
  for (const std::string& target : targets_) {
    const double error = take(squared_error_of(target)), mean = take(mean_of(target)), square = take(square_of(target));
    const double variance = square - mean * mean;
    if (variance > 0) metrics["R2 of " + target] = 1 - error / variance;
  }
  double sum = 0;
  int found = 0;
  for (const std::string& name : classes_) {
    const auto place = metrics.find(overlap_of(name));
    if (std::isnan(place->second)) {  // in no mask and no prediction
      metrics.erase(place);
      continue;
    }
    sum += place->second;
    ++found;
  }
  if (found > 0) metrics["mean IoU"] = sum / found;
  const int absent = static_cast<int>(classes_.size()) - found;
  if (absent > 0) {
    log(LogLevel::warning, fmt::format("{} of {} classes are in no mask and no prediction; the mean IoU is that of {}",
                                       absent, classes_.size(), found == 0 ? "none" : "the others"));
  }
}

}  // namespace concord::cli
