// LabelMetrics: what an evaluation measures besides loss and accuracy, by the kind of labels.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "concord/concord.hpp"

namespace concord::cli {

/// The mean absolute error of each target of a table, in the unit of its column. None for a table without targets.
[[nodiscard]] NamedMetrics errors_of_targets(const data::CsvEncoding& table);

class LabelMetrics {
 public:
  /// Of each target of a table the mean absolute error and R², 1 − Σ(y − t)² / Σ(t − mean of t)²; of masks the
  /// intersection over union of each class, and its mean over the classes that occur in masks or predictions.
  LabelMetrics(const Samples& samples, const std::optional<data::CsvEncoding>& table);

  /// For EvaluateOptions::metrics.
  [[nodiscard]] const NamedMetrics& parts() const { return parts_; }
  /// Replaces the parts by what they are parts of.
  void join(std::map<std::string, double>& metrics) const;

 private:
  void add_targets(const data::CsvEncoding& table);
  void add_masks(const Samples& samples, std::int32_t classes);

  NamedMetrics parts_;
  std::vector<std::string> targets_, classes_;
};

}  // namespace concord::cli
