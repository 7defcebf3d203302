// The sums from the device, and the metrics computed from them.
#include "concord/train/evaluation_totals.hpp"

#include <algorithm>
#include <utility>

#include "concord/train/loss_sums.hpp"
#include "concord/train/metrics.hpp"

namespace concord::train {

EvaluationTotals::Sums::Sums(std::string role_of_names, std::vector<LossTerm::Kind> kinds_of_terms)
    : role(std::move(role_of_names)), kinds(std::move(kinds_of_terms)), sums(kinds.size()), weights(kinds.size()) {}

double EvaluationTotals::Sums::value(double samples) const { return joined_loss(kinds, sums, weights, samples); }

EvaluationTotals::EvaluationTotals(VariablesPtr variables, const Shape& batch_labels, const StepProgram& program)
    : variables_(std::move(variables)), loss_(role_of(Purpose::evaluate), program.terms) {
  constexpr std::int64_t kMostBatches = 512;
  batches_ = std::clamp<std::int64_t>((std::int64_t{1} << 24) / most_hits(batch_labels), 1, kMostBatches);
  for (const auto& [name, terms] : program.metrics) metrics_.emplace(name, Sums(role_of_metric(name), terms));
  const auto clear = [&](Sums& sums) {
    take(sums);
    std::ranges::fill(sums.sums, 0);
    std::ranges::fill(sums.weights, 0);
  };
  clear(loss_);
  for (auto& [name, sums] : metrics_) clear(sums);
  for (const char* name : {kEvalFirst, kEvalAmongK, kEvalLabels}) take(name);
}

void EvaluationTotals::step() {
  if (++waiting_ == batches_) take();
}

void EvaluationTotals::take() {
  waiting_ = 0;
  take(loss_);
  for (auto& [name, sums] : metrics_) take(sums);
  first += take(kEvalFirst);
  among_k += take(kEvalAmongK);
  labels += take(kEvalLabels);
}

std::map<std::string, double> EvaluationTotals::metrics(double samples) const {
  std::map<std::string, double> values;
  for (const auto& [name, sums] : metrics_) values.emplace(name, sums.value(samples));
  return values;
}

void EvaluationTotals::take(Sums& sums) {
  for (std::size_t t = 0; t < sums.kinds.size(); ++t) {
    sums.sums[t] += take(loss_sum_name(sums.role, t));
    sums.weights[t] += take(loss_weight_name(sums.role, t));
  }
}

double EvaluationTotals::take(const std::string& name) {
  if (!variables_->contains(name)) return 0;
  Tensor sums = variables_->read(name);
  double value = 0, unit = 1;
  for (float& sum : sums.values<float>()) {
    value += unit * static_cast<double>(sum);
    unit *= static_cast<double>(kHitUnit);
    sum = 0;
  }
  variables_->write(name, sums);
  return value;
}

}  // namespace concord::train
