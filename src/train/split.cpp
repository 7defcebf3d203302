// Speeds of ranks, from steps with weights of their own.
#include "concord/train/split.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <optional>
#include <vector>

#include "concord/collective/gathered.hpp"
#include "concord/core/check.hpp"
#include "concord/core/log.hpp"
#include "concord/data/selection.hpp"
#include "concord/train/checks.hpp"
#include "concord/train/peers.hpp"
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
  program.all_reduce_by([](const Operand&, std::size_t) {});
  std::vector<std::int32_t> rows(static_cast<std::size_t>(batch));
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<std::int32_t>(i);
  write_batch(program, data::read_rows(data, rows, state.at.seed, 0));
  return program;
}

/// Samples a second of each rank; empty if one of them has no memory for it. All work for the same time: they may share
/// cores, or a line to the memory.
std::vector<double> measured_speeds(const TrainerState& state, const Samples& data, std::int64_t batch) {
  using Clock = std::chrono::steady_clock;
  collective::Group& group = *state.ranks.group();
  std::optional<Program> step;
  const auto run = [&](double seconds) {
    const auto start = Clock::now();
    double passed = 0;
    int runs = 0;
    while (runs == 0 || passed < seconds) {
      step->run();
      state.device->finish();
      ++runs;
      passed = std::chrono::duration<double>(Clock::now() - start).count();
    }
    return passed / runs;
  };
  try {
    step = lone_step(state, data, batch);
    run(0);  // the first run is slower
  } catch (const OutOfMemory& error) {
    log(LogLevel::warning, fmt::format("the speed cannot be measured: {}", error.what()));
    step.reset();
  }
  if (!all_of(group, step.has_value())) return {};
  const std::vector<double> steps = collective::gathered(group, run(0));
  const double seconds = std::max(kSeconds, kLeastRuns * *std::ranges::max_element(steps));
  return collective::gathered(group, static_cast<double>(batch) / run(seconds));
}

/// Steps of `batch` samples.
void choose_split(TrainerState& state, const Samples& data, std::int64_t batch) {
  if (!state.ranks.are_split() || !state.options.split.by_speed) return;
  std::vector<double> speeds = measured_speeds(state, data, std::min(batch, data.size()));
  if (speeds.empty()) speeds.assign(static_cast<std::size_t>(state.ranks.size()), 1);
  if (state.ranks.rank() == 0) {
    log(LogLevel::info, fmt::format("batches are split by measured speed, {:.3g} samples/s", fmt::join(speeds, " : ")));
  }
  // Each has a sample of the batch: one and a half, so that rounding leaves one.
  const double whole = std::accumulate(speeds.begin(), speeds.end(), 0.0);
  const double least = 1.5 * whole / static_cast<double>(batch * state.parts_of_batch);
  for (double& speed : speeds) speed = std::max(speed, least);
  state.options.split = {.shares = speeds};
  state.ranks.set_shares(std::move(speeds));
}

}  // namespace

std::pair<EpochPlan, EpochPlan> plans_of(TrainerState& state, const Samples& data, const FitOptions& options) {
  choose_split(state, data, options.batch);
  const EpochPlan all = plan_epoch(data.size(), options.batch * state.parts_of_batch, options.last_batch);
  if (!state.ranks.are_split()) check_batches(state.recipe, data, all);
  // Of all ranks, so that all throw alike.
  for (int rank = 0; state.ranks.are_split() && rank < state.ranks.size(); ++rank) {
    check_batches(state.recipe, data, state.ranks.part_of_plan(all, rank));
  }
  return {all, state.ranks.own_plan(all)};
}

}  // namespace concord::train
