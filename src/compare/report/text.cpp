// The results of a comparison as a table, and what they amount to.
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "concord/compare/compare.hpp"
#include "concord/compare/report/loss_text.hpp"
#include "concord/core/human_bytes.hpp"
#include "concord/core/median.hpp"

namespace concord {
namespace {

struct PassWords {
  std::string_view name, value;
};

const PassWords& words_of(Pass pass) {
  static constexpr std::array<PassWords, 3> kWords{
      {{"forward", "forward value"}, {"gradient", "gradient"}, {"update", "updated value"}}};
  return kWords.at(static_cast<std::size_t>(pass));
}

std::string sentence(const DeviceRun& run) {
  const Deviation& d = *run.first_deviation;
  return fmt::format(
      "{} ({}): {} '{}' of node {} exceeds its tolerance after {} steps: error {:.3g}, tolerance {:.3g}; largest "
      "relative error of an element {:.3g}, {:.3g} ULP{}\n    operator {} {}, kernel {}\n    {}\n",
      run.device.id, run.device.name, words_of(d.pass).value, d.value, d.node, d.step, d.error, d.tolerance,
      d.largest_relative, d.largest_ulps, d.place(), d.op, name_of(d.form), d.kernel, d.shapes);
}

std::string_view mismatch_text(Mismatch mismatch) {
  return mismatch == Mismatch::first_run ? "the first run" : "its kernels run one by one";
}

double last_distance(const auto& run) {
  return run.weight_distances.empty() ? 0 : run.weight_distances.back().distance;
}

std::string drift_sentences(const Comparison& comparison) {
  std::string text;
  const auto add = [&](const std::string& who, const auto& run) {
    text += fmt::format("drift of {}: distance of the weights {:.2e}, largest loss deviation {:.2e}\n", who,
                        last_distance(run), run.largest_loss_deviation);
  };
  for (std::size_t d = 1; d < comparison.runs.size(); ++d) add(comparison.runs[d].device.id, comparison.runs[d]);
  for (const PerturbedRun& run : comparison.perturbed) {
    add(comparison.runs.front().device.id + " from weights moved by one ULP", run);
  }
  return text;
}

std::string cost_sentences(const Comparison& comparison) {
  const auto sentence_of = [&](std::string_view what, std::string_view whose, std::span<const double> seconds) {
    if (seconds.empty()) return std::string();
    return fmt::format("{}: {}, {:.0f} ms each{}, {:.1f} times a step of the slowest device without checks\n", what,
                       seconds.size(), 1e3 * median(seconds), whose, comparison.in_slowest_steps(seconds));
  };
  const CheckCost& cost = comparison.check_cost;
  return fmt::format("\n{}{}", sentence_of("checks of every operator, unfused and fused", "", cost.all_seconds),
                     sentence_of("checked steps", " for all devices together", cost.step_seconds));
}

}  // namespace

std::string_view name_of(Pass pass) { return words_of(pass).name; }

double Comparison::in_slowest_steps(std::span<const double> seconds) const {
  double slowest = 0;
  for (const DeviceRun& run : runs) slowest = std::max(slowest, run.median_ms);
  return slowest > 0 ? 1e3 * median(seconds) / slowest : 0;
}

std::string Comparison::disagreement(std::size_t place) const {
  const DeviceRun& run = runs.at(place);
  if (run.first_deviation) {
    return fmt::format("node {} on {} exceeds its tolerance", run.first_deviation->node, run.device.id);
  }
  if (run.rerun_check && run.rerun_check->mismatch != Mismatch::none) {
    return fmt::format("step {} on {}, run again, differs from {}", run.rerun_check->mismatch_step, run.device.id,
                       mismatch_text(run.rerun_check->mismatch));
  }
  const auto wrong = std::ranges::find_if(run.losses, [](float loss) { return !std::isfinite(loss); });
  if (wrong != run.losses.end()) {
    return fmt::format("the loss of step {} on {} is not finite", wrong - run.losses.begin() + 1, run.device.id);
  }
  const bool is_reference = place == 0 && runs.size() > 1;
  return is_reference || run.checked_values > 0 ? "" : fmt::format("no operator of {} was checked", run.device.id);
}

std::string Comparison::rerun_check_text(std::size_t place) const {
  const DeviceRun& run = runs.at(place);
  if (!run.rerun_check) return {};
  const RerunCheck& again = *run.rerun_check;
  if (again.non_finite.found) {
    return fmt::format("{}: step {} has a value that is not finite; the first is {}", run.device.id,
                       again.non_finite_step, again.non_finite.str());
  }
  const bool is_right = !run.first_deviation && again.mismatch == Mismatch::none;
  if (!std::isfinite(again.loss.deviation)) return {};
  return fmt::format(
      "{}: the loss of step {} deviates by {:.2e} (from weights moved by one ULP: {:.2e}); {} of its steps were run "
      "again and checked on its own values{}",
      run.device.id, again.loss.step, again.loss.deviation, again.loss.explained, again.checked_steps,
      is_right ? ": all are correct" : "");
}

std::string Comparison::disagreement() const {
  for (std::size_t place = 0; place < runs.size(); ++place) {
    if (std::string why = disagreement(place); !why.empty()) return why;
  }
  return {};
}

std::string_view Comparison::verdict() const {
  if (agrees()) return runs.size() > 1 ? "the devices agree" : "nothing is wrong";
  return runs.size() > 1 ? "the devices do not agree" : "something is wrong";
}

std::int64_t Comparison::checked_values() const {
  std::int64_t checked = 0;
  for (const DeviceRun& run : runs) checked += run.checked_values;
  return checked;
}

std::string Comparison::table() const {
  std::string text = fmt::format("{}: {} steps, batch {}, seed {}, {}; reference {}\n\n", network, options.steps,
                                 options.batch, options.seed, name_of(options.precision),
                                 options.reference == Reference::float64 ? "float64" : runs.front().device.name);
  std::size_t id_width = 12, name_width = 4;
  for (const DeviceRun& run : runs) {
    id_width = std::max(id_width, run.device.id.size());
    name_width = std::max(name_width, run.device.name.size());
  }
  text += fmt::format("{:<{}} {:<{}} {:>10} {:>11} {:>9} {:>10} {:>10} {:>11} {:>13}  {}\n", "device", id_width, "name",
                      name_width, "ms/step", "samples/s", "J/step", "memory", "first step", "last loss", "max loss dev",
                      "diverging operator");
  for (const DeviceRun& run : runs) {
    const bool is_reference = &run == &runs.front();
    text += fmt::format("{:<{}} {:<{}} {:>10.3f} {:>11.0f} {:>9} {:>10} {:>8.2f} s {:>11} {:>13}  {}\n", run.device.id,
                        id_width, run.device.name, name_width, run.median_ms, run.samples_per_second,
                        run.joules_a_step ? fmt::format("{:.3g}", *run.joules_a_step) : "-",
                        human_bytes(run.memory_bytes), run.first_step_ms / 1e3, loss_text(run.losses.back()),
                        is_reference ? "-" : fmt::format("{:.2e}", run.largest_loss_deviation),
                        run.first_deviation ? run.first_deviation->node : "none");
  }
  text += cost_sentences(*this);
  if (options.drift) text += drift_sentences(*this);
  for (std::size_t place = 0; place < runs.size(); ++place) {
    if (runs[place].first_deviation) text += sentence(runs[place]);
    if (const std::string again = rerun_check_text(place); !again.empty()) text += again + "\n";
  }
  if (!runs.front().unreferenced.empty()) {
    text += fmt::format("no float64 reference, compared with the first device: {}\n",
                        fmt::join(runs.front().unreferenced, ", "));
  }
  const std::string why = disagreement();
  return text + fmt::format("{}: {}\n", verdict(),
                            why.empty() ? fmt::format("{} values of operators were checked, each on the same inputs",
                                                      checked_values())
                                        : why);
}

}  // namespace concord
