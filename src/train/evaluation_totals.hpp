// EvaluationTotals: the sums of an evaluation, gathered from the device. Internal to the room.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "concord/train/programs.hpp"

namespace concord::train {

/// The device sums in single precision. The host reads the sums before they exceed the exact range, and often enough
/// that the loss keeps its significant digits.
class EvaluationTotals {
 public:
  /// Resets the sums on the device. `batch_labels` is the shape of the labels of a batch.
  EvaluationTotals(VariablesPtr variables, const Shape& batch_labels, const StepProgram& program);
  /// Called after each run of the program.
  void step();
  /// Called after the last run.
  void take();

  /// Those of all batches as one.
  [[nodiscard]] double loss(double samples) const { return loss_.value(samples); }
  [[nodiscard]] std::map<std::string, double> metrics(double samples) const;
  /// Labels that came first, or among the k first, and those that count; 0 where no program counts them.
  double first = 0, among_k = 0, labels = 0;

 private:
  /// Of a loss or a metric, by terms.
  struct Sums {
    Sums(std::string role_of_names, std::vector<LossTerm::Kind> kinds_of_terms);
    [[nodiscard]] double value(double samples) const;
    std::string role;
    std::vector<LossTerm::Kind> kinds;
    std::vector<double> sums, weights;
  };
  void take(Sums& sums);
  double take(const std::string& name);

  VariablesPtr variables_;
  std::int64_t batches_ = 1, waiting_ = 0;
  Sums loss_;
  std::map<std::string, Sums> metrics_;
};

}  // namespace concord::train
