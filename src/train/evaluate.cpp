// Trainer::evaluate, predict and refresh_statistics: whole data sets through the network without training it.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "concord/core/check.hpp"
#include "concord/core/log.hpp"
#include "concord/train/metrics.hpp"
#include "concord/train/non_finite_search.hpp"
#include "concord/train/pace.hpp"
#include "concord/train/state.hpp"
#include "concord/train/stream.hpp"
#include "concord/train/trainer.hpp"

namespace concord {
namespace {

constexpr const char* kRole = "eval";

/// The sums of a loss or a metric, by terms.
struct TermTotals {
  TermTotals(std::string role_of_names, std::vector<LossTerm::Kind> kinds_of_terms)
      : role(std::move(role_of_names)), kinds(std::move(kinds_of_terms)), sums(kinds.size()), weights(kinds.size()) {}
  /// That of all batches as one.
  [[nodiscard]] double value(double samples) const {
    double value = 0;
    for (std::size_t t = 0; t < kinds.size(); ++t) {
      const bool is_total = kinds[t] == LossTerm::Kind::total, is_mean = kinds[t] == LossTerm::Kind::mean;
      value += sums[t] / (is_total ? 1 : is_mean ? samples : weights[t]);
    }
    return value;
  }
  std::string role;
  std::vector<LossTerm::Kind> kinds;
  std::vector<double> sums, weights;
};

/// The sums of an evaluation. On the device they are in single precision, so they are taken from there before they can
/// pass what it counts exactly, and often enough that the loss loses no digits that matter.
class Totals {
 public:
  Totals(TrainerState& state, const Shape& batch_labels, const train::StepProgram& program)
      : state_(state),
        batches_(std::clamp<std::int64_t>((std::int64_t{1} << 24) / most_hits(batch_labels), 1, kMostBatches)),
        loss_(kRole, program.terms) {
    for (const auto& [name, terms] : program.metrics) {
      metrics_.emplace(name, TermTotals(train::role_of_metric(name), terms));
    }
    take();
    first = among_k = labels = 0;
    for_each([](TermTotals& totals) {
      std::ranges::fill(totals.sums, 0);
      std::ranges::fill(totals.weights, 0);
    });
  }
  void step() {
    if (++waiting_ == batches_) take();
  }
  void take() {
    waiting_ = 0;
    for_each([&](TermTotals& totals) {
      for (std::size_t t = 0; t < totals.kinds.size(); ++t) {
        totals.sums[t] += take(train::loss_sum_name(totals.role, t));
        totals.weights[t] += take(train::loss_weight_name(totals.role, t));
      }
    });
    first += take(train::kEvalFirst);
    among_k += take(train::kEvalAmongK);
    labels += take(train::kEvalLabels);
  }
  [[nodiscard]] const TermTotals& loss() const { return loss_; }
  [[nodiscard]] const std::map<std::string, TermTotals>& metrics() const { return metrics_; }
  double first = 0, among_k = 0, labels = 0;

 private:
  static constexpr std::int64_t kMostBatches = 512;

  void for_each(const auto& function) {
    function(loss_);
    for (auto& [name, totals] : metrics_) function(totals);
  }
  double take(const std::string& name) {
    if (!state_.variables->contains(name)) return 0;
    Tensor sums = state_.variables->read(name);
    double value = 0, unit = 1;
    for (float& sum : sums.values<float>()) {
      value += unit * static_cast<double>(sum);
      unit *= static_cast<double>(kHitUnit);
      sum = 0;
    }
    state_.variables->write(name, sums);
    return value;
  }

  TrainerState& state_;
  std::int64_t batches_, waiting_ = 0;
  TermTotals loss_;
  std::map<std::string, TermTotals> metrics_;
};

/// The numbers from `first` on.
std::vector<std::int32_t> rows_from(std::int64_t first, std::int64_t count) {
  std::vector<std::int32_t> rows(static_cast<std::size_t>(count));
  std::iota(rows.begin(), rows.end(), static_cast<std::int32_t>(first));
  return rows;
}

/// Runs every batch of an epoch in order.
Totals run_all(TrainerState& state, const Dataset& data, const train::EpochPlan& plan, const train::ProgramKey& key) {
  const auto [full, last] = state.epoch_programs(key, plan, data.classes);
  std::optional<train::Stream> stream;
  if (!key.source.is_resident()) {
    stream.emplace(state.device, data, plan, FitOptions{});
    stream->start(rows_from(0, plan.samples), 0);
  }
  state.variables->write(train::cursor_name(kRole), Tensor(DType::i32, Shape{1}));
  std::vector<std::int64_t> labels(data.labels.shape().dims().begin(), data.labels.shape().dims().end());
  labels[0] = plan.full.size;
  Totals totals(state, Shape(std::move(labels)), *full);
  train::Pace pace(*state.device);
  for (std::int64_t b = 0; b < plan.batches(); ++b) {
    train::StepProgram& step = b < plan.full.rows ? *full : *last;
    if (stream) stream->next(step.program);
    step.program.run();
    pace.step();
    totals.step();
  }
  totals.take();
  return totals;
}

/// Prediction does not depend on the place in the epoch: programs serve data sets of any length.
train::EpochPlan anywhere(train::EpochPlan plan) {
  plan.full.rows = 0;
  plan.last.first = 0;
  return plan;
}

bool all_finite(const Tensor& tensor) {
  return tensor.dtype() != DType::f32 ||
         std::ranges::all_of(tensor.values<float>(), [](float x) { return std::isfinite(x); });
}

/// Rows [first, first + count) of a tensor, without a copy of more.
Tensor rows_of(const Tensor& tensor, std::int64_t first, std::int64_t count) {
  std::vector<std::int64_t> dims(tensor.shape().dims().begin(), tensor.shape().dims().end());
  const std::size_t row_bytes = tensor.spec().bytes() / static_cast<std::size_t>(dims[0]);
  dims[0] = count;
  return Tensor::from_bytes(
      {tensor.dtype(), Shape(std::move(dims))},
      tensor.bytes().subspan(static_cast<std::size_t>(first) * row_bytes, static_cast<std::size_t>(count) * row_bytes));
}

}  // namespace

Metrics TrainerState::evaluate(const Dataset& data, const EvaluateOptions& evaluation) {
  const timeline::Span span("evaluate");
  check(data);
  CONCORD_CHECK(evaluation.k >= 1, ArgumentError, "evaluate: k must be 1 or more, got {}", evaluation.k);
  train::check_metrics(evaluation.metrics);
  const train::EpochPlan plan = train::plan_epoch(data.size(), evaluation.batch);
  const int k = data.classes > 0 ? std::min(evaluation.k, data.classes) : 0;
  if (!is_resident(data)) check_fits(data, train::Purpose::evaluate, plan.full.size, evaluation.metrics);
  const train::ProgramKey key{train::Purpose::evaluate, source_of(data, true), {}, k, averaged(), evaluation.metrics};
  const Totals totals = run_all(*this, data, plan, key);
  const auto samples = static_cast<double>(data.size());
  Metrics metrics;
  metrics.samples = data.size();
  metrics.loss = totals.loss().value(samples);
  if (!std::isfinite(metrics.loss)) require_right_indices(data, plan, key);
  for (const auto& [name, metric] : totals.metrics()) metrics.named.emplace(name, metric.value(samples));
  if (k > 0) {
    // Where some are ignored the device has counted the others.
    const bool all_count = !variables->contains(train::kEvalLabels);
    const auto labels = all_count ? static_cast<double>(data.labels.elements()) : totals.labels;
    metrics.accuracy = totals.first / labels;
    metrics.top_k = totals.among_k / labels;
    metrics.k = k;
  }
  return metrics;
}

void TrainerState::require_right_indices(const Dataset& data, const train::EpochPlan& plan,
                                         const train::ProgramKey& key) {
  const timeline::Span span("search for a wrong index");
  const bool is_prediction = key.purpose == train::Purpose::predict;
  const auto [full, last] = epoch_programs(key, is_prediction ? anywhere(plan) : plan, data.classes);
  train::NonFiniteSearch search(key.averaged ? with_averages(*full->graph) : variables, options.precision);
  for (std::int64_t b = 0; b < plan.batches(); ++b) {
    const bool is_full = b < plan.full.rows;
    const std::int64_t first = b * plan.full.size, count = is_full ? plan.full.size : plan.last.size;
    NonFiniteReport report;
    try {
      if (key.source.is_resident()) {
        variables->write(train::cursor_name(kRole), Tensor::of<std::int32_t>(Shape{1}, rows_from(b, 1)));
        report = search.run(is_full ? full : last, nullptr);
      } else {
        Dataset batch;
        batch.features = rows_of(data.features, first, count);
        if (!is_prediction) batch.labels = rows_of(data.labels, first, count);
        report = search.run(is_full ? full : last, &batch);
      }
    } catch (const Error& error) {
      return log(LogLevel::info, fmt::format("no search for a wrong index: {}", error.what()));
    }
    train::require_right_index(report, rows_from(first, count), is_prediction ? "predict" : "evaluate", "");
    if (report.found) return;
  }
}

Metrics TrainerState::evaluate_within_memory(const Dataset& data, std::int64_t& batch, std::int64_t least,
                                             const NamedMetrics& metrics) {
  try {
    return evaluate(data, {.batch = batch, .metrics = metrics});
  } catch (const OutOfMemory& error) {
    if (batch == least) throw;
    log(LogLevel::info, fmt::format("evaluation in batches of {} from now on: {}", least, error.what()));
  }
  batch = least;
  return evaluate(data, {.batch = batch, .metrics = metrics});
}

Metrics Trainer::evaluate(const Dataset& data, const EvaluateOptions& options) {
  return with_state("evaluating", [&](TrainerState& state) { return state.evaluate(data, options); });
}

void Trainer::refresh_statistics(const Dataset& data, std::int64_t batch) {
  with_state("refreshing statistics", [&](TrainerState& state) { state.refresh_statistics(data, batch); });
}

void TrainerState::refresh_statistics(const Dataset& data, std::int64_t batch) {
  using train::Purpose;
  check(data);
  train::EpochPlan plan = train::plan_epoch(data.size(), batch);
  plan.last.size = 0;
  plan.samples = plan.full.rows * plan.full.size;
  TrainerState& state = *this;
  if (!state.is_resident(data)) state.check_fits(data, Purpose::statistics, plan.full.size);
  const train::ProgramKey key{Purpose::statistics, state.source_of(data, true), {}, 0, state.averaged()};
  const auto [full, last] = state.epoch_programs(key, plan, data.classes);
  std::vector<std::int32_t> order = data::permutation(data.size(), state.options.seed);
  order.resize(static_cast<std::size_t>(plan.samples));
  const std::string role = train::role_of(Purpose::statistics);
  std::optional<train::Stream> stream;
  if (key.source.is_resident()) {
    state.variables->write(train::order_name(role, plan.full),
                           Tensor::of<std::int32_t>(Shape{plan.full.rows, plan.full.size}, order));
  } else {
    stream.emplace(state.device, data, plan, FitOptions{});
    stream->start(std::move(order), 0);
  }
  state.variables->write(train::cursor_name(role), Tensor(DType::i32, Shape{1}));
  train::Pace pace(*state.device);
  for (std::int64_t b = 0; b < plan.batches(); ++b) {
    if (stream) stream->next(full->program, false);
    full->program.run();
    pace.step();
  }
}

Tensor Trainer::predict(const Tensor& features, std::int64_t batch) {
  Dataset data;
  data.features = features;
  return predict(data, batch);
}

Tensor Trainer::predict(const Dataset& data, std::int64_t batch) {
  return with_state("predicting", [&](TrainerState& state) { return state.predict(data, batch); });
}

Tensor TrainerState::predict(const Dataset& data, std::int64_t batch) {
  CONCORD_CHECK(data.features.shape().rank() >= 1 && data.features.elements() > 0, ArgumentError,
                "predict: no samples given");
  const train::EpochPlan plan = train::plan_epoch(data.size(), batch);
  const train::Source source{{}, data.feature_spec(), {DType::f32, Shape{}}, data.scale, data.shift};
  const train::ProgramKey key{train::Purpose::predict, source, {}, 0, averaged()};
  const auto [full, last] = epoch_programs(key, anywhere(plan), 0);
  Tensor outputs;
  std::size_t filled = 0;
  for (std::int64_t b = 0; b < plan.batches(); ++b) {
    const bool is_full = b < plan.full.rows;
    const std::int64_t batch_size = is_full ? plan.full.size : plan.last.size;
    const train::StepProgramPtr& step = is_full ? full : last;
    step->program.write("features", rows_of(data.features, b * plan.full.size, batch_size));
    step->program.run();
    const Tensor output = [&] {
      const timeline::Span waiting("read outputs");
      return step->program.read(step->output);
    }();
    if (b == 0) {
      CONCORD_CHECK(output.shape().rank() >= 1 && output.shape()[0] == batch_size, ShapeError,
                    "predict: the network turns {} samples into {}", batch_size, output.shape().str());
      std::vector<std::int64_t> dims(output.shape().dims().begin(), output.shape().dims().end());
      dims[0] = plan.samples;
      outputs = Tensor(output.dtype(), Shape(std::move(dims)));
    }
    std::ranges::copy(output.bytes(), outputs.bytes().begin() + static_cast<std::ptrdiff_t>(filled));
    filled += output.spec().bytes();
  }
  if (data.features.dtype() == DType::i32 && !all_finite(outputs)) require_right_indices(data, plan, key);
  return outputs;
}

}  // namespace concord
