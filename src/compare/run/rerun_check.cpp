// Runs the training of one device again and compares each step with the first run.
#include "concord/compare/run/rerun_check.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>

#include "concord/compare/run/batches.hpp"

namespace concord {
namespace {

using Contents = std::map<std::string, Tensor>;

constexpr std::int64_t kMostEarlier = 64;  // steps checked before the two in question: each takes as long as dozens

bool is_finite(const Tensor& tensor) {
  return tensor.dtype() != DType::f32 ||
         std::ranges::all_of(tensor.values<float>(), [](float number) { return std::isfinite(number); });
}

/// Some have infinities by design, such as masks.
bool stay_finite(const Contents& before, const Contents& after) {
  return std::ranges::all_of(
      after, [&](const auto& named) { return is_finite(named.second) || !is_finite(before.at(named.first)); });
}

bool has_same_bits(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b) || (std::isnan(a) && std::isnan(b));
}

bool have_same_bits(const Contents& a, const Contents& b) {
  return std::ranges::equal(a, b, [](const auto& x, const auto& y) {
    return x.first == y.first && std::ranges::equal(x.second.bytes(), y.second.bytes());
  });
}

/// One device's steps from the first one on.
class SecondRunSteps {
 public:
  SecondRunSteps(std::size_t place, const TrainingStep& step, std::span<Replica> sides, const Samples& dataset,
                 OperatorChecks& checks, Comparison& comparison, RerunCheck& found)
      : place_(place),
        step_(step),
        side_(sides[place]),
        dataset_(dataset),
        checks_(checks),
        comparison_(comparison),
        found_(found) {}

  void find_non_finite(std::int64_t last) {
    Batches batches = begin();
    Contents before = side_.variables->read_all();
    for (std::int64_t done = 0; done < last; ++done) {
      const Batch batch = batches.next();
      if (!repeats(batch, done)) return;
      Contents after = side_.variables->read_all();
      if (std::isfinite(side_.loss()) && stay_finite(before, after)) {
        before = std::move(after);
        continue;
      }
      for (const auto& [name, value] : before) side_.variables->write(name, value);
      found_.non_finite = checks_.find_non_finite(place_, batch);
      if (found_.non_finite.found) {
        found_.non_finite_step = done + 1;
      } else {
        note_mismatch(Mismatch::one_by_one, done);
      }
      if (place_ > 0) check(batch, done);
      return;
    }
  }

  /// Repeats steps up to `last` and checks those after the first `skipped`. Returns whether one of them is wrong.
  bool check_steps(std::int64_t skipped, std::int64_t last) {
    Batches batches = begin();
    for (std::int64_t done = 0; done < last; ++done) {
      const Batch batch = batches.next();
      if (done < skipped) {
        if (!repeats(batch, done)) return true;
        continue;
      }
      const StepMade made = check(batch, done);
      if (run().first_deviation || !repeats(batch, done)) return true;
      if (has_same_bits(made.loss, side_.loss()) && have_same_bits(made.variables, side_.variables->read_all())) {
        continue;
      }
      note_mismatch(Mismatch::one_by_one, done);
      return true;
    }
    return false;
  }

 private:
  Batches begin() {
    side_.restart(step_);
    return {dataset_, comparison_.options.batch, comparison_.options.seed};
  }

  [[nodiscard]] DeviceRun& run() const { return comparison_.runs[place_]; }

  StepMade check(const Batch& batch, std::int64_t done) {
    ++found_.checked_steps;
    return checks_.check_own(place_, batch, done, comparison_.runs);
  }

  /// Runs the step. Returns whether its loss equals that of the first run.
  bool repeats(const Batch& batch, std::int64_t done) {
    side_.run(batch);
    if (has_same_bits(side_.loss(), run().losses[static_cast<std::size_t>(done)])) return true;
    note_mismatch(Mismatch::first_run, done);
    return false;
  }

  void note_mismatch(Mismatch mismatch, std::int64_t done) {
    found_.mismatch = mismatch;
    found_.mismatch_step = done + 1;
  }

  std::size_t place_;
  const TrainingStep& step_;
  Replica& side_;
  const Samples& dataset_;
  OperatorChecks& checks_;
  Comparison& comparison_;
  RerunCheck& found_;
};

}  // namespace

std::optional<SuspiciousLoss> suspicious_loss(std::span<const float> losses, std::span<const float> expected,
                                              std::span<const PerturbedRun> perturbed, Precision precision) {
  constexpr double kBeyond = 100;
  double explained = 0;
  bool is_expected_finite = true;
  for (std::size_t i = 0; i < losses.size(); ++i) {
    for (const PerturbedRun& run : perturbed)
      explained = std::max(explained, relative_deviation(run.losses[i], expected[i]));
    is_expected_finite = is_expected_finite && std::isfinite(expected[i]);
    const SuspiciousLoss loss{static_cast<std::int64_t>(i) + 1, relative_deviation(losses[i], expected[i]), explained};
    if (!std::isfinite(losses[i])) return loss;
    const double least = std::max({explained, 1e-4, unit_of(precision)});
    if (is_expected_finite && loss.deviation > kBeyond * least) return loss;
  }
  return std::nullopt;
}

RerunCheck run_again(std::size_t place, const SuspiciousLoss& loss, const TrainingStep& step, std::span<Replica> sides,
                     const Samples& dataset, OperatorChecks& checks, Comparison& comparison) {
  RerunCheck found{.loss = loss};
  SecondRunSteps steps(place, step, sides, dataset, checks, comparison, found);
  if (!std::isfinite(comparison.runs[place].losses[static_cast<std::size_t>(loss.step - 1)])) {
    steps.find_non_finite(loss.step);
    return found;
  }
  const std::int64_t before = std::max<std::int64_t>(0, loss.step - 2);
  if (steps.check_steps(before, loss.step)) return found;
  (void)steps.check_steps(std::max<std::int64_t>(0, before - kMostEarlier), before);
  return found;
}

}  // namespace concord
