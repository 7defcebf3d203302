// The page of a comparison: what was run, what came out, and the charts and tables.
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "concord/compare/compare.hpp"
#include "concord/compare/report/html.hpp"
#include "concord/compare/report/loss_text.hpp"
#include "concord/compare/report/page_charts.hpp"
#include "concord/compare/report/page_style.hpp"
#include "concord/compare/report/page_tables.hpp"
#include "concord/core/human_bytes.hpp"
#include "concord/core/median.hpp"
#include "concord/core/text.hpp"
#include "concord/core/version.hpp"
#include "concord/device/selection.hpp"

namespace concord {
namespace {

using html::escaped;

std::string section(const char* title, const std::string& explanation, const std::string& content) {
  return content.empty() ? "" : fmt::format("<h2>{}</h2>\n<p class=\"soft\">{}</p>\n{}", title, explanation, content);
}

std::string diverging(const DeviceRun& run) {
  const Deviation& d = *run.first_deviation;
  const auto code = [](const std::string& text) { return "<code>" + escaped(text) + "</code>"; };
  return fmt::format("<p>On <b>{}</b> the first operator outside its tolerance is <b>{}</b> {} ({}): ",
                     escaped(run.device.id), code(d.node), name_of(d.form), name_of(d.pass)) +
         fmt::format("error {}, tolerance {} ({} times as much), after {} steps; ", html::brief(d.error),
                     html::brief(d.tolerance), html::brief(d.share()), d.step) +
         fmt::format("largest relative error of an element {}, {} ULP{}.<br>", html::brief(d.largest_relative),
                     html::brief(d.largest_ulps), d.place()) +
         fmt::format("<span class=\"soft\">operator</span> {}, <span class=\"soft\">kernel</span> {}, ", code(d.op),
                     code(d.kernel)) +
         fmt::format("<span class=\"soft\">value</span> {}<br>{}</p>", code(d.value), code(d.shapes));
}

std::string cost_of(const Comparison& comparison, const char* what, const std::vector<double>& seconds) {
  if (seconds.empty()) return {};
  return fmt::format(" {}: {}, {:.0f} ms each, {:.1f} times a step of the slowest device without checks.", what,
                     seconds.size(), 1e3 * median(seconds), comparison.in_slowest_steps(seconds));
}

std::string verdict_of(const Comparison& comparison) {
  std::string words(comparison.verdict());
  words[0] = upper(words[0]);
  std::string text = comparison.agrees() ? fmt::format("<div class=\"verdict\"><b>✓ {}.</b>", words)
                                         : fmt::format("<div class=\"verdict bad\"><b>✗ {}.</b>", words);
  text += fmt::format(" {} values of operators were checked, each on the same inputs.", comparison.checked_values());
  text += cost_of(comparison, "Checks of every operator, unfused and fused", comparison.check_cost.all_seconds);
  text += cost_of(comparison, "Checked steps of all devices together", comparison.check_cost.step_seconds);
  if (comparison.check_cost.compile_seconds > 0) {
    text += fmt::format(" Compiling the checked programs: {:.1f} s.", comparison.check_cost.compile_seconds);
  }
  for (std::size_t place = 0; place < comparison.runs.size(); ++place) {
    const DeviceRun& run = comparison.runs[place];
    const std::string why = comparison.disagreement(place);
    if (run.first_deviation) {
      text += diverging(run);
    } else if (!why.empty()) {
      text += fmt::format("<p>Reason: {}.</p>", escaped(why));
    }
    if (const std::string again = comparison.rerun_check_text(place); !again.empty()) {
      text += fmt::format("<p>{}.</p>", escaped(again));
    }
  }
  return text + "</div>\n";
}

/// Nothing if the device does not report it.
std::string fact(const char* name, const std::string& value) {
  return value.empty() ? "" : fmt::format("<dt>{}</dt><dd>{}</dd>", name, escaped(value));
}

std::string card(const Comparison& comparison, std::size_t place) {
  const DeviceRun& run = comparison.runs[place];
  const DeviceInfo& device = run.device;
  std::string facts = fact("kind", std::string(name_of(device.kind))) + fact("vendor", device.vendor) +
                      fact("platform", device.platform) + fact("driver", device.driver);
  if (device.memory > 0) facts += fact("device memory", human_bytes(device.memory));
  facts +=
      fact("compute units", fmt::format("{}", device.compute_units)) +
      fact("step", fmt::format("{:.3f} ms ({:.3f} to {:.3f})", run.median_ms, run.min_ms, run.max_ms)) +
      fact("samples", fmt::format("{:.0f} per second", run.samples_per_second)) +
      fact("energy", run.joules_a_step ? fmt::format("{:.3g} J per step ({})", *run.joules_a_step, run.energy_source)
                                       : "not reported") +
      fact("first step", fmt::format("{:.2f} s", run.first_step_ms / 1e3)) +
      fact("memory used", human_bytes(run.memory_bytes)) +
      fact("last loss", run.losses.empty() ? "–" : loss_text(run.losses.back()));
  if (place > 0) {
    facts += fact("largest loss deviation",
                  fmt::format("{} at step {}", html::brief(run.largest_loss_deviation), run.largest_at_step));
  }
  if (run.speed) {
    facts += fact("matrix multiplications", html::with_prefix(run.speed->flops_per_second) + "FLOP/s") +
             fact("bandwidth", html::with_prefix(run.speed->bytes_per_second) + "B/s") +
             fact("launch overhead", html::with_prefix(run.speed->launch_seconds) + "s");
  }
  facts += fact("values checked", fmt::format("{}", run.checked_values)) +
           fact("first diverging operator", run.first_deviation ? run.first_deviation->node : "none");
  return fmt::format(
      "<div class=\"card\"><h3><span class=\"key {}\" style=\"display:inline-block;vertical-align:middle\"></span> {}{}"
      "</h3><div>{}</div><dl>{}</dl></div>\n",
      device_style(place), escaped(device.id), place == 0 ? " <span class=\"soft\">reference</span>" : "",
      escaped(device.name), facts);
}

std::string cards(const Comparison& comparison) {
  std::string text = "<div class=\"cards\">\n";
  for (std::size_t d = 0; d < comparison.runs.size(); ++d) text += card(comparison, d);
  return text + "</div>\n";
}

std::string drift(const Comparison& comparison) {
  if (!comparison.options.drift) return {};
  return legend(comparison, true) + "<h3>Loss</h3>\n" + loss_drift_chart(comparison) + "<h3>Weights</h3>\n" +
         weight_drift_chart(comparison);
}

std::string errors_explanation(const Comparison& comparison) {
  const bool exact = comparison.options.reference == Reference::float64;
  std::string text = fmt::format(
      "The largest error of each operator, as a share of its tolerance. Below it, the errors of single elements: the "
      "largest relative error, and the largest in ULP. An element below {:.0f} times the fp32 tolerance counts as that "
      "large. Each operator had the inputs of {} and is compared with {}.",
      kLeastOfTolerance, escaped(comparison.runs.front().device.id),
      exact ? "the host in double precision" : escaped(comparison.runs.front().device.id) + "'s result");
  if (const auto& names = comparison.runs.front().unreferenced; !names.empty()) {
    text += " No float64 reference, compared with the first device:";
    for (const std::string& name : names) text += " <code>" + escaped(name) + "</code>";
    text += ".";
  }
  return text;
}

}  // namespace

std::string Comparison::html() const {
  const std::string title =
      fmt::format("{} on {} device{}", escaped(network), runs.size(), runs.size() == 1 ? "" : "s");
  std::string page = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width, initial-scale=1\"><title>{} – concord compare</title><style>{}</style></head>\n"
      "<body><main>\n<h1>{}</h1>\n<p class=\"soft\">{} steps of batch {}, seed {}, {}; the reference is {}. Concord "
      "{}.</p>\n",
      title, kPageStyle, title, options.steps, options.batch, options.seed, name_of(options.precision),
      options.reference == Reference::float64 ? "float64 on the host" : escaped(runs.front().device.id), kVersion);
  page += verdict_of(*this) + section("Devices", "Properties and speed of each device.", cards(*this));
  page += section("Loss", "The same weights, batches and random numbers on each device.",
                  legend(*this, false) + loss_chart(*this));
  page += section("Drift",
                  "Training amplifies rounding from step to step, on correct devices too. The dashed lines are runs of "
                  "the reference device from initial weights moved by one ULP. A device near or below them differs "
                  "only by rounding. Steps without a difference are not shown.",
                  drift(*this));
  page += section("Errors by operator", errors_explanation(*this), heat_tables(*this));
  page += section("Time by operator",
                  "Time in one step, each launch measured alone; the bar is relative to the longest. Below it: the "
                  "share of the roofline (the least time for its FLOPs or bytes divided by the measured time; above "
                  "100% the values were in a cache) and the number of launches.",
                  time_table(*this));
  page += section("Roofline",
                  "Lines: measured bandwidth and FLOP/s of each device. Circles: operators and kernels; the area is "
                  "their share of the time. Operators without arithmetic, such as copies, are not shown.",
                  options.speed ? legend(*this, false) + roofline_chart(*this) : "");
  return page + "</main></body></html>\n";
}

}  // namespace concord
