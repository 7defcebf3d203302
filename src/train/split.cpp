// Speeds of ranks, from steps with weights of their own.
#include "concord/train/split.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

#include "concord/core/check.hpp"
#include "concord/core/log.hpp"
#include "concord/data/selection.hpp"
#include "concord/train/checks.hpp"
#include "concord/train/state.hpp"

namespace concord::train {
namespace {

constexpr double kSeconds = 0.5;
constexpr int kLeastRuns = 2;

/// The step of one device without others.
Program lone_step(const TrainerState& state, const Samples& data, std::int64_t batch) {
  Recipe recipe = state.recipe;
  recipe.minimize.ranks = recipe.minimize.accumulate = 1;
  const Traced traced = trace(recipe, {Purpose::train, streamed_source(data), {batch, 1}});
  Program program = compile(*traced.graph, traced.results(), std::make_shared<Variables>(state.device, state.at.seed),
                            {.precision = state.options.precision, .memory_budget = state.options.memory_budget});
  std::vector<std::int32_t> rows(static_cast<std::size_t>(batch));
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<std::int32_t>(i);
  write_batch(program, data::read_rows(data, rows, state.at.seed, 0));
  return program;
}

/// Samples a second.
double measured_speed(const TrainerState& state, const Samples& data, std::int64_t batch) {
  using Clock = std::chrono::steady_clock;
  Program step = lone_step(state, data, batch);
  const auto run = [&] {
    step.run();
    state.device->finish();
  };
  run();
  state.ranks.group()->barrier();  // they may share cores, or a line to the memory
  const auto start = Clock::now();
  double seconds = 0;
  int runs = 0;
  while (runs < kLeastRuns || seconds < kSeconds) {
    run();
    ++runs;
    seconds = std::chrono::duration<double>(Clock::now() - start).count();
  }
  return static_cast<double>(batch) * runs / seconds;
}

/// Steps of `batch` samples, on all ranks at the same time.
void choose_split(TrainerState& state, const Samples& data, std::int64_t batch) {
  if (!state.ranks.split_batches() || !state.options.split.by_speed) return;
  collective::Group& group = *state.ranks.group();
  std::vector<double> speeds(static_cast<std::size_t>(group.size()));
  speeds[static_cast<std::size_t>(group.rank())] = measured_speed(state, data, std::min(batch, data.size()));
  group.all_gather(std::as_writable_bytes(std::span(speeds)), sizeof(double));
  if (group.rank() == 0)
    log(LogLevel::info, fmt::format("batches are split by measured speed, {:.3g} samples/s", fmt::join(speeds, " : ")));
  state.options.split = {.shares = speeds};
  state.ranks.split_batches(std::move(speeds));
}

}  // namespace

std::pair<EpochPlan, EpochPlan> plans_of(TrainerState& state, const Samples& data, const FitOptions& options) {
  choose_split(state, data, options.batch);
  const bool is_split = state.ranks.split_batches();
  const std::int64_t batch = options.batch * (is_split ? state.ranks.size() : 1);
  const EpochPlan all = plan_epoch(data.size(), batch, options.last_batch);
  const EpochPlan own = state.ranks.own_plan(all);
  check_batches(state.recipe, data, is_split ? own : all);
  return {all, own};
}

}  // namespace concord::train
