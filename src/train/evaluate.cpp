// Trainer::evaluate and predict: whole data sets through the network in evaluation mode.
#include <algorithm>
#include <numeric>

#include "concord/core/check.hpp"
#include "concord/train/pace.hpp"
#include "concord/train/state.hpp"
#include "concord/train/stream.hpp"
#include "concord/train/trainer.hpp"

namespace concord {
namespace {

constexpr const char* kRole = "eval";

/// Runs every batch of an epoch in order.
void run_all(TrainerState& state, const Dataset& data, const train::EpochPlan& plan, const train::ProgramKey& key) {
  const auto [full, last] = state.epoch_programs(key, plan, data.classes);
  std::optional<train::Stream> stream;
  if (!key.source.is_resident()) {
    stream.emplace(state.device, data, plan.full.size, FitOptions{});
    std::vector<std::int32_t> order(static_cast<std::size_t>(plan.samples));
    std::iota(order.begin(), order.end(), 0);
    stream->start(std::move(order), 0);
  }
  state.variables->write(train::cursor_name(kRole), Tensor(DType::i32, Shape{1}));
  for (const char* counter : {train::kEvalLossSum, train::kEvalFirst, train::kEvalAmongK}) state.set_scalar(counter, 0);
  train::Pace pace(*state.device);
  for (std::int64_t b = 0; b < plan.batches(); ++b) {
    train::StepProgram& step = b < plan.full.rows ? *full : *last;
    if (stream) stream->next(step.program);
    step.program.run();
    pace.step();
  }
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
  train::check_dataset(data);
  CONCORD_CHECK(evaluation.k >= 1, ArgumentError, "evaluate: k must be 1 or more, got {}", evaluation.k);
  const train::EpochPlan plan = train::plan_epoch(data.size(), evaluation.batch);
  const int k = data.classes > 0 ? std::min(evaluation.k, data.classes) : 0;
  if (!is_resident(data)) check_fits(data, train::Purpose::evaluate, plan.full.size);
  run_all(*this, data, plan, {train::Purpose::evaluate, source_of(data, true), {}, data.size(), k, averaged()});
  const auto samples = static_cast<double>(data.size());
  Metrics metrics;
  metrics.samples = data.size();
  metrics.loss = static_cast<double>(scalar(train::kEvalLossSum)) / samples;
  if (k > 0) {
    const auto labels = static_cast<double>(data.labels.elements());
    metrics.accuracy = static_cast<double>(scalar(train::kEvalFirst)) / labels;
    metrics.top_k = static_cast<double>(scalar(train::kEvalAmongK)) / labels;
    metrics.k = k;
  }
  return metrics;
}

Metrics Trainer::evaluate(const Dataset& data, const EvaluateOptions& options) {
  return state_->evaluate(data, options);
}

Tensor Trainer::predict(const Tensor& features, std::int64_t batch) {
  Dataset data;
  data.features = features;
  return predict(data, batch);
}

Tensor Trainer::predict(const Dataset& data, std::int64_t batch) {
  CONCORD_CHECK(data.features.shape().rank() >= 1 && data.features.elements() > 0, ArgumentError,
                "predict: no samples given");
  const train::EpochPlan plan = train::plan_epoch(data.size(), batch);
  const train::Source source{{}, data.feature_spec(), {DType::f32, Shape{}}, data.scale, data.shift};
  // Prediction does not depend on the place in the epoch: programs serve data sets of any length.
  train::EpochPlan anywhere = plan;
  anywhere.full.rows = 0;
  const auto [full, last] =
      state_->epoch_programs({train::Purpose::predict, source, {}, 0, 0, state_->averaged()}, anywhere, 0);
  Tensor outputs;
  std::size_t filled = 0;
  for (std::int64_t b = 0; b < plan.batches(); ++b) {
    const bool is_full = b < plan.full.rows;
    const std::int64_t batch_size = is_full ? plan.full.size : plan.last.size;
    const train::StepProgramPtr& step = is_full ? full : last;
    step->program.write("features", rows_of(data.features, b * plan.full.size, batch_size));
    step->program.run();
    const Tensor output = step->program.read(step->output);
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
  return outputs;
}

}  // namespace concord
