// The page of a search, in the style of compare's page.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "concord/cli/counted.hpp"
#include "concord/cli/search/search_report.hpp"
#include "concord/compare/report/html.hpp"
#include "concord/compare/report/page_style.hpp"
#include "concord/compare/report/plot.hpp"
#include "concord/core/version.hpp"

namespace concord::cli {
namespace {

using search::Parameter;
using search::Trial;

constexpr std::size_t kBands = 5, kNamedCurves = 8, kMostCurves = 200, kMostTrials = 2000;
constexpr int kPanelHeight = 360, kPanelTop = 34, kPanelBottom = 30, kPanelSide = 60, kBetweenAxes = 120;

constexpr const char* kSearchStyle = R"css(
.parallel { max-height: none; padding: 12px; } .parallel svg { display: block; margin: 0 auto; }
.line.trial { stroke-width: 1.5; } .line.trial.best { stroke-width: 4; }
.b0 { --c: var(--s0); } .b1 { --c: var(--s2); } .b2 { --c: var(--s5); } .b3 { --c: var(--s1); } .b4 { --c: var(--noise); }
.mark.noise { fill-opacity: 1; }
td.long { text-align: left; white-space: normal; overflow-wrap: anywhere; }
)css";

/// An axis of the parallel coordinates.
struct Coordinate {
  std::string name;
  std::vector<std::pair<double, std::string>> ticks;  // places from 0 to 1
};

Coordinate coordinate_of(const Parameter& parameter) {
  Coordinate coordinate{parameter.name, {}};
  std::vector<std::string> values = parameter.choices;
  if (values.empty()) values = {parameter.at(0), parameter.at(0.5), parameter.at(1)};
  for (const std::string& value : values) coordinate.ticks.emplace_back(parameter.place(value), value);
  return coordinate;
}

std::string metric_text(const SearchReport& report, double metric) {
  return report.monitor == SearchMonitor::loss ? fmt::format("{:.3g}", metric) : fmt::format("{:.2f} %", 100 * metric);
}

double left_of(std::size_t axis) { return kPanelSide + static_cast<double>(axis) * kBetweenAxes; }
double top_of(double place) { return kPanelTop + (1 - place) * (kPanelHeight - kPanelTop - kPanelBottom); }

std::string axes_of(const std::vector<Coordinate>& coordinates) {
  std::string text;
  for (std::size_t a = 0; a < coordinates.size(); ++a) {
    const double x = left_of(a);
    text += fmt::format("<line class=\"axis\" x1=\"{0}\" x2=\"{0}\" y1=\"{1}\" y2=\"{2}\"/>", x, top_of(1), top_of(0));
    text += fmt::format("<text class=\"name\" text-anchor=\"middle\" x=\"{}\" y=\"18\">{}</text>", x,
                        html::escaped(coordinates[a].name));
    for (const auto& [place, value] : coordinates[a].ticks) {
      text += fmt::format(
          "<line class=\"tickmark\" x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>"
          "<text x=\"{}\" y=\"{:.1f}\">{}</text>",
          x - 4, x, top_of(place), top_of(place), x + 5, top_of(place) + 4, html::escaped(value));
    }
  }
  return text;
}

std::string parallel_coordinates(const SearchReport& report, const std::vector<const Trial*>& ranking) {
  std::vector<Coordinate> coordinates;
  std::vector<std::size_t> places;
  const std::vector<Parameter>& parameters = report.space.parameters();
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    if (parameters[p].kind == Parameter::Kind::choice && parameters[p].choices.size() == 1) continue;
    places.push_back(p);
    coordinates.push_back(coordinate_of(parameters[p]));
  }
  const auto metric_of = [&](const Trial* trial) { return report.metric_of(trial->best->at); };
  const double best = metric_of(ranking.front()), worst = metric_of(ranking[(ranking.size() - 1) * 9 / 10]);
  // The best is on top; the worst tenth is at the bottom, so that a few bad trials do not press the others together.
  const auto place_of = [&](double metric) {
    return best == worst ? 1.0 : std::clamp((metric - worst) / (best - worst), 0.0, 1.0);
  };
  Coordinate result{report.metric_name(), {}};
  for (const double place : {0.0, 0.5, 1.0}) {
    if (best == worst && place < 1) continue;
    result.ticks.emplace_back(place, metric_text(report, worst + place * (best - worst)));
  }
  coordinates.push_back(std::move(result));
  std::string lines;
  for (std::size_t rank = std::min(ranking.size(), kMostTrials); rank-- > 0;) {
    const Trial& trial = *ranking[rank];
    lines += fmt::format("<polyline class=\"line trial b{}{}\" points=\"", rank * kBands / ranking.size(),
                         rank == 0 ? " best" : "");
    for (std::size_t a = 0; a < places.size(); ++a) {
      const double place = parameters[places[a]].place(trial.settings[places[a]].value);
      lines += fmt::format("{},{:.1f} ", left_of(a), top_of(place));
    }
    lines +=
        fmt::format("{},{:.1f}\"><title>trial {}: {}, {} {}</title></polyline>", left_of(places.size()),
                    top_of(place_of(metric_of(&trial))), trial.number, html::escaped(settings_text(trial.settings)),
                    report.metric_name(), metric_text(report, metric_of(&trial)));
  }
  const int width = 2 * kPanelSide + 20 + static_cast<int>(places.size()) * kBetweenAxes;
  return fmt::format(
      "<div class=\"scroll parallel\" tabindex=\"0\"><svg role=\"img\" aria-label=\"Settings and result of each "
      "trial\" viewBox=\"0 0 {} {}\" "
      "width=\"{}\" height=\"{}\">{}{}</svg></div>\n",
      width, kPanelHeight, width, kPanelHeight, lines, axes_of(coordinates));
}

std::string curves(const SearchReport& report, const std::vector<const Trial*>& ranking) {
  std::vector<double> epochs, metrics;
  std::vector<std::vector<PlotPoint>> lines;
  for (std::size_t i = 0; i < std::min(ranking.size(), kMostCurves); ++i) {
    std::vector<PlotPoint>& line = lines.emplace_back();
    for (const auto& [epoch, point] : ranking[i]->curve) {
      line.push_back({static_cast<double>(epoch), report.metric_of(point)});
      epochs.push_back(line.back().x);
      metrics.push_back(line.back().y);
    }
  }
  Axis across = axis_over("epoch", Scale::linear, epochs);
  across.has_whole_ticks = true;
  const bool is_log =
      report.monitor == SearchMonitor::loss && std::ranges::all_of(metrics, [](double m) { return m > 0; });
  const Axis up =
      axis_over(fmt::format("validation {}", report.metric_name()), is_log ? Scale::log : Scale::linear, metrics);
  std::string text, legend;
  for (const auto& [width, name] : {std::pair{940, "wide"}, {360, "narrow"}}) {
    Plot plot(across, up, width);
    for (std::size_t i = lines.size(); i-- > 0;) {
      plot.line(lines[i], i < kNamedCurves ? fmt::format("s{}", i) : "noise dashed");
    }
    text += fmt::format("<div class=\"{}\">{}</div>\n", name, plot.svg("Validation after each epoch"));
  }
  for (std::size_t i = 0; i < std::min(lines.size(), kNamedCurves); ++i) {
    legend += fmt::format("<li><span class=\"key s{}\"></span><b>trial {}</b> {}</li>\n", i, ranking[i]->number,
                          html::escaped(settings_text(ranking[i]->settings)));
  }
  return fmt::format("<div class=\"chart\">{}<ul class=\"legend\">\n{}</ul></div>\n", text, legend);
}

std::string trials_table(const SearchReport& report, const std::vector<const Trial*>& ranking) {
  std::string head = "<th>trial</th>", body;
  for (const Parameter& parameter : report.space.parameters())
    head += fmt::format("<th>{}</th>", html::escaped(parameter.name));
  head += fmt::format("<th>{}</th><th>epoch</th><th>epochs</th><th>seconds</th><th>device</th><th></th>",
                      report.metric_name());
  std::vector<const Trial*> all = ranking;
  for (const Trial& trial : report.study.trials()) {
    if (!trial.best) all.push_back(&trial);
  }
  for (std::size_t i = 0; i < std::min(all.size(), kMostTrials); ++i) {
    const Trial& trial = *all[i];
    body += fmt::format("<tr><th>{}</th>", trial.number);
    for (const search::Setting& setting : trial.settings)
      body += fmt::format("<td>{}</td>", html::escaped(setting.value));
    body += trial.best ? fmt::format("<td>{}</td><td>{}</td>", metric_text(report, report.metric_of(trial.best->at)),
                                     trial.best->at.epoch)
                       : "<td>–</td><td>–</td>";
    body += fmt::format("<td>{}</td><td>{:.1f}</td><td>{}</td><td class=\"long\">{}{}{}</td></tr>\n", trial.epochs,
                        trial.seconds, html::escaped(trial.device), name_of(trial.status),
                        trial.reason.empty() ? "" : ": ", html::escaped(trial.reason));
  }
  std::string rest;
  if (all.size() > kMostTrials) rest = fmt::format("<p class=\"soft\">{} more.</p>\n", all.size() - kMostTrials);
  return fmt::format(
      "<div class=\"scroll\" tabindex=\"0\"><table><thead><tr>{}</tr></thead><tbody>\n{}</tbody></table></div>\n{}",
      head, body, rest);
}

}  // namespace

std::string search_page(const SearchReport& report) {
  const std::vector<const Trial*> ranking = report.study.ranking();
  const std::string title = html::escaped(fmt::format("{} on {}", report.network, report.data));
  std::string page = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width, initial-scale=1\"><title>{} – concord search</title><style>{}{}</style></head>\n"
      "<body><main>\n<h1>{}</h1>\n<p class=\"soft\">{} by {}. Concord {}.</p>\n",
      title, kPageStyle, kSearchStyle, title, counted(report.study.trials().size(), "trial"), report.scheduler,
      kVersion);
  if (ranking.empty()) {
    page += "<div class=\"verdict bad\"><b>✗ No trial has a result.</b></div>\n";
  } else {
    const Trial& best = *ranking[0];
    page += fmt::format("<div class=\"verdict\"><b>✓ Trial {}: {} {}</b><p><code>{}</code></p></div>\n", best.number,
                        report.metric_name(), metric_text(report, report.metric_of(best.best->at)),
                        html::escaped(settings_text(best.settings)));
    page += "<h2>Settings</h2>\n<p class=\"soft\">A line for each trial. Blue is the best fifth of them.</p>\n" +
            parallel_coordinates(report, ranking);
    page += fmt::format(
                "<h2>Curves</h2>\n<p class=\"soft\">Validation {} after each epoch; names are those of the best {}."
                "</p>\n",
                report.metric_name(), counted(std::min(ranking.size(), kNamedCurves), "trial")) +
            curves(report, ranking);
  }
  page += "<h2>Trials</h2>\n<p class=\"soft\">The best first; <i>epoch</i> is that of the best result.</p>\n" +
          trials_table(report, ranking);
  return page + "</main></body></html>\n";
}

}  // namespace concord::cli
