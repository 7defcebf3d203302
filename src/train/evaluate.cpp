// Trainer::evaluate, predict and refresh_statistics: whole data sets through the network without training it.
#include <algorithm>
#include <cmath>
#include <utility>

#include "concord/core/check.hpp"
#include "concord/core/log.hpp"
#include "concord/data/in_memory.hpp"
#include "concord/data/selection.hpp"
#include "concord/train/checks.hpp"
#include "concord/train/evaluation_totals.hpp"
#include "concord/train/loss_sums.hpp"
#include "concord/train/non_finite_search.hpp"
#include "concord/train/pace.hpp"
#include "concord/train/state.hpp"
#include "concord/train/stream.hpp"

namespace concord {
namespace train {
namespace {

constexpr const char* kEvaluateRole = "eval";

/// Runs every batch of an epoch in order. `damaged` gets the rows that another sample took the place of.
EvaluationTotals run_all(TrainerState& state, const Samples& data, const EpochPlan& plan, const ProgramKey& key,
                         data::BadSamples bad_samples, std::vector<std::int32_t>& damaged) {
  const auto [full, last] = state.programs.of_epoch(key, plan);
  std::optional<Stream> stream;
  if (!key.source.is_resident()) {
    data::LoaderOptions loader = loader_options(state.recipe, data, state.at.seed);
    loader.bad_samples = bad_samples;
    const bool may_leave_out = !state.is_divided() && !data.is_sequential();  // each stage reads samples by itself
    if (may_leave_out) loader.left_out = [&damaged](std::int32_t row) { damaged.push_back(row); };
    stream.emplace(state.device, data, plan, std::move(loader));
    stream->start(rows_from(0, plan.samples), 0);
  } else {
    write_order(*state.weights.variables(), kEvaluateRole, plan, data, rows_from(0, plan.samples));
  }
  state.weights.variables()->write(cursor_name(kEvaluateRole), Tensor(DType::i32, Shape{1}));
  const Shape labels = with_batch(data.label_specs()[0].spec.shape, plan.full.size);
  EvaluationTotals totals(state.weights.variables(), labels, *full);
  Pace pace(*state.device);
  for (std::int64_t b = 0; b < plan.batches(); ++b) {
    StepProgram& step = b < plan.full.rows ? *full : *last;
    step.run([&](Program& program) {
      if (stream) stream->next(program);
    });
    pace.step();
    totals.step();
  }
  totals.take();
  state.programs.require_all_ranks();
  return totals;
}

/// Prediction does not depend on the position in the epoch, so its programs work for data sets of any length.
EpochPlan anywhere(EpochPlan plan) {
  plan.full.rows = 0;
  plan.last.first = 0;
  return plan;
}

bool all_finite(const Tensor& tensor) {
  return tensor.dtype() != DType::f32 ||
         std::ranges::all_of(tensor.values<float>(), [](float x) { return std::isfinite(x); });
}

/// Called after an evaluation or prediction with results that are not finite. Throws ArgumentError if an index outside
/// its table caused the first such value.
void require_right_indices(TrainerState& state, const Samples& data, const EpochPlan& plan, const ProgramKey& key) {
  const timeline::Span span("search for a wrong index");
  const bool is_prediction = key.purpose == Purpose::predict;
  const auto [full, last] = state.programs.of_epoch(key, is_prediction ? anywhere(plan) : plan);
  NonFiniteSearch search(state.weights.storage_for(*full->graph, key.averaged, full->graph->variables()),
                         state.options.precision);
  for (std::int64_t b = 0; b < plan.batches(); ++b) {
    const bool is_full = b < plan.full.rows;
    const std::int64_t first = b * plan.full.size, count = is_full ? plan.full.size : plan.last.size;
    NonFiniteReport report;
    try {
      if (key.source.is_resident()) {
        state.weights.variables()->write(cursor_name(kEvaluateRole),
                                         Tensor::of<std::int32_t>(Shape{1}, rows_from(b, 1)));
        report = search.run(is_full ? full : last, nullptr);
      } else {
        const Dataset batch = data::read_rows(data, rows_from(first, count));
        report = search.run(is_full ? full : last, &batch);
      }
    } catch (const Error& error) {
      return log(LogLevel::info, fmt::format("the search for a wrong index failed: {}", error.what()));
    }
    require_right_index(report, rows_from(first, count), is_prediction ? "predict" : "evaluate", "");
    if (report.found) return;
  }
}

void refresh_statistics(TrainerState& state, const Samples& data, std::int64_t batch) {
  check_data(state.recipe, data);
  EpochPlan plan = plan_epoch(data.size(), batch);
  plan.last.size = 0;
  plan.samples = plan.full.rows * plan.full.size;
  if (!state.resident.contains(data)) check_fits(state.recipe, data, Purpose::statistics, plan.full.size);
  const ProgramKey key{Purpose::statistics, state.resident.source_of(data), {}, 0, state.weights.are_averaged()};
  const auto [full, last] = state.programs.of_epoch(key, plan);
  std::vector<std::int32_t> order =
      data.is_sequential() ? rows_from(0, data.size()) : data::permutation(data.size(), state.at.seed);
  order.resize(static_cast<std::size_t>(plan.samples));
  const std::string role = role_of(Purpose::statistics);
  std::optional<Stream> stream;
  if (key.source.is_resident()) {
    write_order(*state.weights.variables(), role, plan, data, std::move(order));
  } else {
    data::LoaderOptions loader = loader_options(state.recipe, data, state.at.seed);
    loader.bad_samples = data::BadSamples::skip;
    stream.emplace(state.device, data, plan, std::move(loader));
    stream->start(std::move(order), 0);
  }
  state.weights.variables()->write(cursor_name(role), Tensor(DType::i32, Shape{1}));
  Pace pace(*state.device);
  for (std::int64_t b = 0; b < plan.batches(); ++b) {
    full->run([&](Program& program) {
      if (stream) stream->next(program);
    });
    pace.step();
  }
  state.programs.require_all_ranks();
}

/// The outputs by name, or by position where they have none.
std::vector<std::pair<std::string, Value>> named(const Values& outputs) {
  std::vector<std::pair<std::string, Value>> all;
  for (const auto& [name, value] : outputs) {
    all.emplace_back(name.empty() ? std::to_string(all.size()) : name, value);
  }
  return all;
}

/// Puts the rows of a batch behind those of the batches before it.
void append_rows(Tensor& all, const Tensor& rows, std::int64_t first, std::int64_t samples, std::int64_t batch) {
  CONCORD_CHECK(rows.shape().rank() >= 1 && rows.shape()[0] == batch, ShapeError,
                "predict: the network turns {} sample{} into {}", batch, batch == 1 ? "" : "s", rows.shape().str());
  std::vector<std::int64_t> dims(rows.shape().dims().begin(), rows.shape().dims().end());
  const std::size_t row_bytes = rows.spec().bytes() / static_cast<std::size_t>(batch);
  dims[0] = samples;
  if (first == 0) all = Tensor(rows.dtype(), Shape(std::move(dims)));
  std::ranges::copy(rows.bytes(), all.bytes().subspan(static_cast<std::size_t>(first) * row_bytes).begin());
}

io::TensorMap predict_values(TrainerState& state, const Samples& data, std::int64_t batch) {
  const Dataset* const in_memory = data::dataset_of(data);
  CONCORD_CHECK(in_memory == nullptr || (in_memory->features.shape().rank() >= 1 && in_memory->features.elements() > 0),
                ArgumentError, "predict needs at least one sample");
  const EpochPlan plan = plan_epoch(data.size(), batch);
  Source source = streamed_source(data);
  source.labels.clear();
  const ProgramKey key{Purpose::predict, source, {}, 0, state.weights.are_averaged()};
  const auto [full, last] = state.programs.of_epoch(key, anywhere(plan));
  std::optional<Stream> stream;
  if (in_memory == nullptr) {  // a sample that cannot be read has no outputs
    stream.emplace(state.device, data, plan, data::LoaderOptions{.threads = 0, .seed = state.at.seed});
    stream->start(rows_from(0, plan.samples), 0);
  }
  io::TensorMap outputs;
  for (std::int64_t b = 0; b < plan.batches(); ++b) {
    const bool is_full = b < plan.full.rows;
    const std::int64_t first = b * plan.full.size, count = is_full ? plan.full.size : plan.last.size;
    const StepProgramPtr& step = is_full ? full : last;
    step->run([&](Program& program) {
      if (stream) {
        stream->next(program);
      } else {
        write_batch(program, data::read_rows(data, rows_from(first, count)));
      }
    });
    const timeline::Span waiting("read outputs");
    for (const auto& [name, value] : named(step->outputs)) {
      append_rows(outputs[name], step->read(value), first, plan.samples, count);
    }
  }
  state.programs.require_all_ranks();
  const bool reads_indices = std::ranges::any_of(
      data.feature_specs(), [](const ColumnSpec& column) { return column.spec.dtype == DType::i32; });
  const bool is_finite = std::ranges::all_of(outputs, [](const auto& output) { return all_finite(output.second); });
  if (reads_indices && !is_finite && !state.is_divided()) require_right_indices(state, data, plan, key);
  return outputs;
}

/// Evaluates all samples. Where `damaged` gets rows, the result is empty.
Metrics evaluate_all(TrainerState& state, const Samples& data, const EvaluateOptions& options,
                     std::vector<std::int32_t>& damaged) {
  const EpochPlan plan = plan_epoch(data.size(), options.batch);
  const std::vector<ColumnSpec> labels = data.label_specs();
  const Objective& objective = state.recipe.objective_for(Purpose::evaluate);
  const int k = objective.is_single() ? std::min(options.k, labels[0].classes) : 0;
  NamedMetrics named_metrics = options.metrics;
  named_metrics.merge(objective.metrics(labels));
  if (!state.resident.contains(data)) {
    check_fits(state.recipe, data, Purpose::evaluate, plan.full.size, named_metrics);
  }
  const ProgramKey key{Purpose::evaluate, state.resident.source_of(data), {}, k, state.weights.are_averaged(),
                       named_metrics};
  const EvaluationTotals totals = run_all(state, data, plan, key, options.bad_samples, damaged);
  if (!damaged.empty()) return {};
  const auto samples = static_cast<double>(data.size());
  Metrics metrics;
  metrics.samples = data.size();
  metrics.loss = totals.loss(samples);
  if (!std::isfinite(metrics.loss) && !state.is_divided()) require_right_indices(state, data, plan, key);
  metrics.named = totals.metrics(samples);
  if (k > 0) {
    // Where some are ignored the device has counted the others.
    const bool all_count = !state.weights.variables()->contains(kEvalLabels);
    const double counted = all_count ? samples * static_cast<double>(labels[0].spec.shape.elements()) : totals.labels;
    metrics.accuracy = totals.first / counted;
    metrics.top_k = totals.among_k / counted;
    metrics.k = k;
  }
  if (state.pipeline) state.ranks.share(metrics, state.pipeline->last());  // which counts
  if (state.options.model_parallel.is_on()) state.ranks.share(metrics);    // devices may round differently
  return metrics;
}

}  // namespace

Metrics evaluate(TrainerState& state, const Samples& data, const EvaluateOptions& options) {
  const timeline::Span span("evaluate");
  check_data(state.recipe, data);
  CONCORD_CHECK(options.k >= 1, ArgumentError, "evaluate: k must be 1 or more, got {}", options.k);
  check_metrics(options.metrics);
  std::vector<std::int32_t> damaged, rows;
  Metrics metrics = evaluate_all(state, data, options, damaged);
  if (!damaged.empty()) rows = rows_from(0, data.size());
  const SharedSamples borrowed(std::shared_ptr<const Samples>(std::shared_ptr<void>(), &data));
  while (!damaged.empty()) {  // again where a file is lost meanwhile
    for (const std::int32_t at : damaged) {
      std::int32_t& row = rows[static_cast<std::size_t>(at)];
      if (options.left_out) options.left_out(row);
      row = -1;
    }
    std::erase(rows, -1);
    damaged.clear();
    metrics = evaluate_all(state, data::Selection(borrowed, rows), options, damaged);
  }
  return metrics;
}

Metrics evaluate_within_memory(TrainerState& state, const Samples& data, std::int64_t& batch, std::int64_t least,
                               const EvaluateOptions& options) {
  EvaluateOptions own = options;
  own.batch = batch;
  try {
    return evaluate(state, data, own);
  } catch (const OutOfMemory& error) {
    if (batch == least) throw;
    log(LogLevel::info, fmt::format("evaluation in batches of {} from now on: {}", least, error.what()));
  }
  batch = own.batch = least;
  return evaluate(state, data, own);
}

}  // namespace train

Metrics Trainer::evaluate(const Samples& data, const EvaluateOptions& options) {
  return with_state("evaluating", [&](TrainerState& state) { return train::evaluate(state, data, options); });
}

void Trainer::refresh_statistics(const Samples& data, std::int64_t batch) {
  with_state("refreshing statistics", [&](TrainerState& state) { train::refresh_statistics(state, data, batch); });
}

Tensor Trainer::predict(const Tensor& features, std::int64_t batch) {
  Dataset data;
  data.features = features;
  return predict(static_cast<const Samples&>(data), batch);
}

Tensor Trainer::predict(const Samples& data, std::int64_t batch) {
  std::map<std::string, Tensor> outputs = predict_values(data, batch);
  CONCORD_CHECK(outputs.size() == 1, ArgumentError, "predict: the network has {} outputs; use predict_values",
                outputs.size());
  return std::move(outputs.begin()->second);
}

std::map<std::string, Tensor> Trainer::predict_values(const Samples& data, std::int64_t batch) {
  return with_state("predicting", [&](TrainerState& state) { return train::predict_values(state, data, batch); });
}

}  // namespace concord
