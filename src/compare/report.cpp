// The results of a comparison as a table and as JSON.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "concord/compare/compare.hpp"

namespace concord {
namespace {

std::string sentence(const DeviceRun& run) {
  const Deviation& d = *run.first_deviation;
  return fmt::format(
      "{} ({}): {} '{}' of node {} leaves its tolerance after {} steps: error {:.3g}, allowed {:.3g}\n"
      "    operator {}, kernel {}\n    {}\n",
      run.device.id, run.device.name, d.gradient ? "gradient" : "forward value", d.value, d.node, d.step, d.error,
      d.tolerance, d.op, d.kernel, d.shapes);
}

}  // namespace

bool Comparison::agrees() const {
  return std::all_of(runs.begin(), runs.end(), [&](const DeviceRun& run) {
    const bool finite =
        std::all_of(run.losses.begin(), run.losses.end(), [](float loss) { return std::isfinite(loss); });
    return finite && !run.first_deviation && run.checked_values > 0;
  });
}

std::string Comparison::table() const {
  std::string text = fmt::format("{}: {} steps, batch {}, seed {}, {}; reference {}\n\n", network, options.steps,
                                 options.batch, options.seed, name_of(options.precision), runs.front().device.name);
  text += fmt::format("{:<12} {:<34} {:>10} {:>11} {:>10} {:>11} {:>10} {:>13}  {}\n", "device", "name", "ms/step",
                      "samples/s", "memory", "first step", "last loss", "max loss dev", "diverging operator");
  for (const DeviceRun& run : runs) {
    const bool is_reference = &run == &runs.front();
    text += fmt::format("{:<12} {:<34.34} {:>10.3f} {:>11.0f} {:>6.1f} MiB {:>8.2f} s {:>11.6f} {:>13}  {}\n",
                        run.device.id, run.device.name, run.median_ms, run.samples_per_second,
                        static_cast<double>(run.memory_bytes) / (1 << 20), run.first_step_ms / 1e3, run.losses.back(),
                        is_reference ? "-" : fmt::format("{:.2e}", run.largest_loss_deviation),
                        run.first_deviation ? run.first_deviation->node : "none");
  }
  text += "\n";
  for (const DeviceRun& run : runs) {
    if (run.first_deviation) text += sentence(run);
  }
  return text;
}

std::string Comparison::json() const {
  nlohmann::json list = nlohmann::json::array();
  for (const DeviceRun& run : runs) {
    nlohmann::json entry{{"device", run.device.id},
                         {"name", run.device.name},
                         {"platform", run.device.platform},
                         {"driver", run.device.driver},
                         {"losses", run.losses},
                         {"first_step_ms", run.first_step_ms},
                         {"step_ms", {{"median", run.median_ms}, {"min", run.min_ms}, {"max", run.max_ms}}},
                         {"samples_per_second", run.samples_per_second},
                         {"memory_bytes", run.memory_bytes},
                         {"largest_loss_deviation", run.largest_loss_deviation},
                         {"largest_loss_deviation_at_step", run.largest_at_step},
                         {"checked_values", run.checked_values},
                         {"first_deviation", nullptr}};
    if (const auto& d = run.first_deviation) {
      entry["first_deviation"] = {{"node", d->node},   {"operator", d->op},         {"kernel", d->kernel},
                                  {"value", d->value}, {"shapes", d->shapes},       {"gradient", d->gradient},
                                  {"error", d->error}, {"tolerance", d->tolerance}, {"after_steps", d->step}};
    }
    list.push_back(std::move(entry));
  }
  const nlohmann::json document{{"network", network},
                                {"steps", options.steps},
                                {"batch", options.batch},
                                {"seed", options.seed},
                                {"precision", name_of(options.precision)},
                                {"agrees", agrees()},
                                {"devices", std::move(list)}};
  return document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace concord
