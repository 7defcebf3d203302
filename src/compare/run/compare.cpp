// compare: lockstep training on several devices, timing, and the check of every operator.
#include "concord/compare/compare.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <functional>
#include <set>

#include "concord/compare/run/batches.hpp"
#include "concord/compare/run/check_operators.hpp"
#include "concord/compare/run/drift.hpp"
#include "concord/compare/run/rerun_check.hpp"
#include "concord/compare/run/training_step.hpp"
#include "concord/compile/measure.hpp"
#include "concord/core/check.hpp"
#include "concord/core/log.hpp"
#include "concord/energy/meter.hpp"
#include "concord/weights/load.hpp"

namespace concord {
namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

void check_arguments(const Samples& dataset, std::span<const DevicePtr> devices, const CompareOptions& options) {
  CONCORD_CHECK(!devices.empty(), ArgumentError, "compare: no device was given");
  CONCORD_CHECK(std::ranges::none_of(devices, [](const DevicePtr& device) { return device == nullptr; }), ArgumentError,
                "compare: one of the devices is null");
  CONCORD_CHECK(options.steps > 0, ArgumentError, "compare: steps must be at least 1, got {}", options.steps);
  CONCORD_CHECK(options.check_every >= 0, ArgumentError, "compare: check_every must be at least 0, got {}",
                options.check_every);
  CONCORD_CHECK(options.batch > 0, ArgumentError, "compare: the batch must be at least 1, got {}", options.batch);
  CONCORD_CHECK(options.seconds > 0, ArgumentError, "compare: seconds must be positive, got {}", options.seconds);
  // Otherwise after it is known what labels the loss ignores.
  if (data::labels_in_range(dataset)) data::check(dataset);
}

std::vector<Replica> make_sides(const TrainingStep& step, std::span<const DevicePtr> devices, Comparison& comparison) {
  std::vector<Replica> sides;
  for (const DevicePtr& device : devices) {
    const Clock::time_point start = Clock::now();
    sides.emplace_back(step, device, comparison.options.seed);
    DeviceRun run;
    run.device = device->info();
    run.first_step_ms = ms_since(start);
    comparison.runs.push_back(std::move(run));
  }
  return sides;
}

constexpr std::uint64_t kPerturbations[] = {1, 2};  // seeds of the runs beside that of the first device

Replica perturbed_replica(const TrainingStep& step, const DevicePtr& device, std::uint64_t seed,
                          std::span<const std::string> weights, std::uint64_t perturbed_by) {
  Replica side(step, device, seed);
  perturb(*side.variables, weights, perturbed_by);
  return side;
}

std::vector<Replica> make_perturbed(const TrainingStep& step, const DevicePtr& device, Comparison& comparison,
                                    std::span<const std::string> weights) {
  std::vector<Replica> perturbed;
  for (const std::uint64_t seed : kPerturbations) {
    perturbed.push_back(perturbed_replica(step, device, comparison.options.seed, weights, seed));
  }
  comparison.perturbed.resize(perturbed.size());
  return perturbed;
}

/// `compared` is a DeviceRun or a PerturbedRun.
void note_distance(const Replica& side, const Replica& reference, std::span<const std::string> weights,
                   std::int64_t done, auto& compared) {
  compared.weight_distances.push_back({done, weight_distance(*side.variables, *reference.variables, weights)});
}

void measure_sides(std::span<Replica> sides, Comparison& comparison) {
  constexpr int kTracedRuns = 5;
  const CompareOptions& options = comparison.options;
  for (std::size_t d = 0; d < sides.size(); ++d) {
    DeviceRun& run = comparison.runs[d];
    const RunTimes times = measure(sides[d].program, {.seconds = options.seconds, .least = 5});
    run.median_ms = times.median_ms;
    run.min_ms = times.min_ms;
    run.max_ms = times.max_ms;
    run.samples_per_second = 1e3 * static_cast<double>(options.batch) / times.median_ms;
    if (const auto meter = energy_meter(sides[d].device->info())) {
      run.joules_a_step = joules_a_run(sides[d].program, *meter);
      run.energy_source = meter->source();
    }
    if (!options.speed) continue;
    run.speed = measure_speed(sides[d].device, options.precision);
    run.times = operator_times(median_trace(sides[d].program, kTracedRuns), Rows::kind, &*run.speed);
  }
}

bool is_on_host(const Replica& side) { return side.device->info().kind == DeviceKind::cpu; }

/// Whether its work is done as soon as it is enqueued. Only such devices have Device::buffer_over.
bool computes_at_once(const Replica& side) {
  std::array<std::byte, 1> some{};
  return side.device->buffer_over(some) != nullptr;
}

void put_those_at_once_last(std::vector<Replica*>& sides) {
  std::ranges::stable_partition(sides, [](const Replica* side) { return !computes_at_once(*side); });
}

/// Runs a step of every replica and checks its operators. The other replicas' own steps come first. If several devices
/// use the host's cores, they take turns, because their threads would wait for each other. The first of these that
/// computes asynchronously begins before all others, so that the host reads weights meanwhile.
void step_checked(const Batch& batch, std::int64_t done, std::span<Replica> sides, OperatorChecks& checks,
                  Comparison& comparison) {
  const Clock::time_point start = Clock::now();
  const bool take_turns = std::ranges::count_if(sides, is_on_host) > 1;
  std::vector<Replica*> at_any_time, in_turn;
  for (Replica& side : sides.subspan(1)) (take_turns && is_on_host(side) ? in_turn : at_any_time).push_back(&side);
  put_those_at_once_last(at_any_time);
  put_those_at_once_last(in_turn);
  const std::size_t begun = in_turn.empty() || computes_at_once(*in_turn[0]) ? 0 : 1;
  if (begun > 0) in_turn[0]->run(batch);
  for (Replica* side : at_any_time) side->run(batch);
  const float loss = checks.step_first(batch, done, comparison.runs, [&] {
    for (std::size_t i = 0; i < in_turn.size(); ++i) {
      if (i >= begun) in_turn[i]->run(batch);
      (void)in_turn[i]->loss();
    }
  });
  comparison.runs[0].losses.push_back(loss);
  for (std::size_t d = 1; d < sides.size(); ++d) comparison.runs[d].losses.push_back(sides[d].loss());
  comparison.check_cost.step_seconds.push_back(1e-3 * ms_since(start));
}

/// Runs a step of every replica, with a check if `check_every` requires one.
void step_devices(const Batch& batch, std::int64_t done, std::span<Replica> sides, OperatorChecks& checks,
                  Comparison& comparison) {
  const std::int64_t every = comparison.options.check_every;
  if (done > 0 && every > 0 && done % every == 0) return step_checked(batch, done, sides, checks, comparison);
  for (std::size_t d = 0; d < sides.size(); ++d) {
    const Clock::time_point start = Clock::now();
    DeviceRun& run = comparison.runs[d];
    sides[d].run(batch);
    run.losses.push_back(sides[d].loss());
    if (done == 0) run.first_step_ms += ms_since(start);
  }
}

/// All replicas take the same steps: first those of the devices, then those of the perturbed runs.
void train_replicas(Batches& batches, Batch& batch, std::span<Replica> sides, std::span<Replica> perturbed,
                    std::span<const std::string> weights, OperatorChecks& checks, Comparison& comparison) {
  const CompareOptions& options = comparison.options;
  for (std::int64_t i = 0; i < options.steps; ++i) {
    if (i > 0) batch = batches.next();
    step_devices(batch, i, sides, checks, comparison);
    const bool measured = options.drift && is_drift_step(i + 1, options.steps);
    for (std::size_t d = 1; measured && d < sides.size(); ++d) {
      note_distance(sides[d], sides[0], weights, i + 1, comparison.runs[d]);
    }
    for (std::size_t n = 0; n < perturbed.size(); ++n) {
      perturbed[n].run(batch);
      comparison.perturbed[n].losses.push_back(perturbed[n].loss());
      if (measured) note_distance(perturbed[n], sides[0], weights, i + 1, comparison.perturbed[n]);
    }
  }
}

void note_loss_deviations(Comparison& comparison) {
  const std::vector<float>& expected = comparison.runs.front().losses;
  for (DeviceRun& run : comparison.runs) {
    const LossDeviation deviation = loss_deviation(run.losses, expected);
    run.largest_loss_deviation = deviation.largest;
    run.largest_at_step = deviation.at_step;
  }
  for (PerturbedRun& run : comparison.perturbed) {
    run.largest_loss_deviation = loss_deviation(run.losses, expected).largest;
  }
}

/// The losses of two runs from weights moved by one ULP. They run one after the other, because memory may be too small
/// for both.
std::vector<PerturbedRun> perturbed_losses(const TrainingStep& step, const Samples& dataset, const DevicePtr& device,
                                           const CompareOptions& options, std::span<const std::string> weights) {
  std::vector<PerturbedRun> runs;
  for (const std::uint64_t seed : kPerturbations) {
    Replica side = perturbed_replica(step, device, options.seed, weights, seed);
    Batches batches(dataset, options.batch, options.seed);
    std::vector<float> losses;
    for (std::int64_t i = 0; i < options.steps; ++i) {
      side.run(batches.next());
      losses.push_back(side.loss());
    }
    runs.push_back({std::move(losses), 0, {}});
  }
  return runs;
}

/// For each device, the loss that requires a re-run check, if there is one. The perturbed runs happen only if a
/// decision needs them.
std::vector<std::optional<SuspiciousLoss>> suspicious_losses(const TrainingStep& step, const Samples& dataset,
                                                             const DevicePtr& device, const Comparison& comparison,
                                                             std::span<const std::string> weights) {
  std::vector<PerturbedRun> perturbed = comparison.perturbed;
  std::vector<std::optional<SuspiciousLoss>> suspicious;
  for (const DeviceRun& run : comparison.runs) {
    const auto ask = [&] {
      return suspicious_loss(run.losses, comparison.runs.front().losses, perturbed, comparison.options.precision);
    };
    suspicious.push_back(ask());
    if (!suspicious.back() || !std::isfinite(suspicious.back()->deviation) || !perturbed.empty()) continue;
    perturbed = perturbed_losses(step, dataset, device, comparison.options, weights);
    suspicious.back() = ask();
  }
  return suspicious;
}

/// Runs the devices with a suspicious loss again. Earlier results stay valid, even if memory is too small for this.
void run_suspicious_again(const TrainingStep& step, const Samples& dataset, std::span<Replica> sides,
                          std::span<const std::optional<SuspiciousLoss>> suspicious, OperatorChecks& checks,
                          Comparison& comparison) {
  for (std::size_t d = 0; d < sides.size(); ++d) {
    DeviceRun& run = comparison.runs[d];
    if (!suspicious[d] || run.first_deviation) continue;
    log(LogLevel::warning, fmt::format("the loss of step {} on {} deviates more than rounding can explain: its {} "
                                       "steps up to there are run again, and some are checked",
                                       suspicious[d]->step, run.device.id, suspicious[d]->step));
    run.rerun_check = run_again(d, *suspicious[d], step, sides, dataset, checks, comparison);
  }
}

/// Calls `work`, and logs a warning if memory is too small for it.
void with_the_memory_left(const std::function<void()>& work) {
  try {
    work();
  } catch (const OutOfMemory& error) {
    log(LogLevel::warning, fmt::format("the re-run check is skipped, because memory is too small: {}", error.what()));
  }
}

void check_case(const Comparison& comparison) {
  const std::string& wanted = comparison.options.case_node;
  if (wanted.empty()) return;
  std::set<std::string> names;
  for (const DeviceRun& run : comparison.runs) {
    if (run.kept_case) return;
    for (const Deviation& d : run.operators) names.insert(d.node);
  }
  throw ArgumentError(fmt::format("no checked operator is named '{}'; there are {}", wanted, fmt::join(names, ", ")));
}

}  // namespace

Comparison compare(nn::Module& network, const std::string& name, const Objective& objective,
                   const optim::Optimizer& optimizer, const Samples& dataset, std::span<const DevicePtr> devices,
                   const CompareOptions& options) {
  check_arguments(dataset, devices, options);
  Batches batches(dataset, options.batch, options.seed);
  TrainingStep step(network, objective, optimizer, {.clip = options.clip, .groups = options.groups}, options.precision,
                    batches.source(), batches.batch());
  if (!options.weights.empty()) {
    step.weights = weights::load_reported(options.weights, weights::wanted_of(step.graph), options.load);
  }
  data::check(dataset, step.ignored);
  Comparison comparison{name, options, {}};
  std::vector<Replica> sides = make_sides(step, devices, comparison);
  for (std::size_t d = 0; d < sides.size(); ++d) comparison.runs[d].memory_bytes = sides[d].device->allocated();
  OperatorChecks checks(step, sides, options, comparison.check_cost);
  Batch batch = batches.next();
  checks.run_all(batch, 0, comparison.runs);
  check_case(comparison);
  if (options.check_every == 0) checks.release();

  const std::vector<std::string> trained = trained_weights(step.graph);
  {
    std::vector<Replica> perturbed;
    if (options.drift) perturbed = make_perturbed(step, devices[0], comparison, trained);
    train_replicas(batches, batch, sides, perturbed, trained, checks, comparison);
  }
  note_loss_deviations(comparison);
  std::vector<std::optional<SuspiciousLoss>> suspicious(sides.size());
  with_the_memory_left([&] { suspicious = suspicious_losses(step, dataset, devices[0], comparison, trained); });
  checks.run_all(batch, options.steps, comparison.runs);
  with_the_memory_left([&] { run_suspicious_again(step, dataset, sides, suspicious, checks, comparison); });
  checks.release();
  measure_sides(sides, comparison);
  return comparison;
}

}  // namespace concord
