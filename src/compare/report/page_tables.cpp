// Rows that all devices share, and their cells.
#include "concord/compare/report/page_tables.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "concord/compare/report/html.hpp"
#include "concord/compare/report/page_charts.hpp"

namespace concord {
namespace {

std::string header(const Comparison& comparison, const char* first) {
  std::string cells = fmt::format("<th scope=\"col\">{}</th>", first);
  for (const DeviceRun& run : comparison.runs) {
    cells += fmt::format("<th scope=\"col\">{}</th>", html::escaped(run.device.id));
  }
  return "<thead><tr>" + cells + "</tr></thead>";
}

std::string scrolling_table(const std::string& label, const std::string& head, const std::string& rows) {
  return fmt::format(
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" "
      "aria-label=\"{}\"><table>{}<tbody>{}</tbody></table></div>\n",
      label, head, rows);
}

/// May be broken behind its parts where the page is narrow.
std::string breakable(const std::string& name) {
  std::string text;
  for (const char c : html::escaped(name)) {
    text += c;
    if (c == '_' || c == '/' || c == '+') text += "<wbr>";
  }
  return text;
}

std::string row_header(const std::string& name, const std::string& detail) {
  return fmt::format("<th scope=\"row\">{}<small>{}</small></th>", breakable(name), html::escaped(detail));
}

// --- errors

/// How far an error is into its tolerance, as a class of the style sheet.
const char* heat_style(double share) {
  if (share == 0) return "h0";
  if (share <= 0.1) return "h1";
  if (share <= 0.5) return "h2";
  return share <= 1 ? "h3" : "h4";
}

std::string share_text(double share) {
  if (share == 0) return "equal";
  return share > 1 ? "✗ " + html::brief(share) : html::brief(share);
}

std::string heat_cell(const Deviation& d) {
  std::string title = fmt::format("{} ({}): error {}, tolerance {}", d.value, name_of(d.pass), html::brief(d.error),
                                  html::brief(d.tolerance));
  if (d.error != 0) {
    title += fmt::format("; largest relative error of an element {}, {} ULP{}", html::brief(d.largest_relative),
                         html::brief(d.largest_ulps), d.place());
  }
  title += fmt::format("; after {} steps; {}; kernel {}", d.step, d.shapes, d.kernel);
  std::string detail;
  if (d.error != 0) {
    detail = fmt::format("<small>{} · {} ULP</small>", html::brief(d.largest_relative), html::brief(d.largest_ulps));
  }
  return fmt::format("<td class=\"{}\" title=\"{}\">{}{}</td>", heat_style(d.share()), html::escaped(title),
                     share_text(d.share()), detail);
}

/// Cells by row name and device; rows in the order in which they were first named.
class HeatRows {
 public:
  explicit HeatRows(std::size_t devices) : devices_(devices) {}

  /// Of several errors for one cell the worst stays.
  void add(const std::string& name, const std::string& detail, std::size_t device, const Deviation& deviation) {
    const auto [place, is_new] = places_.try_emplace(name + '\n' + detail, rows_.size());
    if (is_new) rows_.push_back({name, detail, std::vector<const Deviation*>(devices_)});
    const Deviation*& cell = rows_[place->second].cells[device];
    if (cell == nullptr || deviation.share() > cell->share()) cell = &deviation;
  }
  /// A device without such an operator has a dash. The first one's says that it is the reference, if it is.
  [[nodiscard]] std::string html(bool first_is_reference) const {
    std::string text;
    for (const Row& row : rows_) {
      text += "<tr>" + row_header(row.name, row.detail);
      for (std::size_t d = 0; d < devices_; ++d) {
        const char* const missing = d == 0 && first_is_reference ? "reference" : "–";
        text += row.cells[d] != nullptr ? heat_cell(*row.cells[d]) : fmt::format("<td class=\"soft\">{}</td>", missing);
      }
      text += "</tr>\n";
    }
    return text;
  }
  [[nodiscard]] bool empty() const { return rows_.empty(); }

 private:
  struct Row {
    std::string name, detail;
    std::vector<const Deviation*> cells;
  };
  std::size_t devices_;
  std::vector<Row> rows_;
  std::map<std::string, std::size_t> places_;
};

enum class HeatDetail : std::uint8_t { kinds, nodes };

HeatRows heat_rows(const Comparison& comparison, HeatDetail detail, Form form) {
  HeatRows rows(comparison.runs.size());
  // If the first device is the reference, it has no results of unfused operators. Then other devices name the rows.
  for (std::size_t i = comparison.runs.size(); i-- > 0;) {
    for (const Deviation& d : comparison.runs[i].operators) {
      if (d.form != form) continue;
      if (detail == HeatDetail::kinds) {
        rows.add(d.op, std::string(name_of(form)), i, d);
      } else {
        rows.add(d.node, d.op, i, d);
      }
    }
  }
  return rows;
}

std::string heat_part(const Comparison& comparison, HeatDetail detail) {
  const bool reference = comparison.options.reference == Reference::device;
  const std::string rows = heat_rows(comparison, detail, Form::alone).html(reference);
  const std::string fused = heat_rows(comparison, detail, Form::fused).html(false);
  if (detail == HeatDetail::kinds) {
    return scrolling_table("errors by kind of operator", header(comparison, "operator"), rows + fused);
  }
  std::string text;
  if (!rows.empty()) {
    text += "<h3>Unfused operators</h3>\n" + scrolling_table("errors of operators", header(comparison, "node"), rows);
  }
  if (!fused.empty()) {
    text +=
        "<h3>Fused operators</h3>\n" + scrolling_table("errors of fused operators", header(comparison, "node"), fused);
  }
  return text;
}

// --- times

/// What an operator is without what is fused behind it: devices fuse differently.
std::string base_name(const std::string& op) { return op.substr(0, op.find('+')); }

using Times = std::map<std::string, OperatorTime>;

Times times_by_base(const DeviceRun& run) {
  Times times;
  for (const OperatorTime& time : run.times) {
    OperatorTime& sum = times[base_name(time.op)];
    sum.count += time.count;
    sum.seconds += time.seconds;
    sum.floor_seconds += time.floor_seconds;
  }
  return times;
}

std::string time_cell(const OperatorTime& time, double largest, std::size_t device) {
  return fmt::format(
      "<td>{}s<small>{:.0f}% · {}×</small><span class=\"bar {}\" "
      "style=\"width:{:.1f}%\"></span></td>",
      html::with_prefix(time.seconds), 100 * time.share(), time.count, device_style(device),
      100 * time.seconds / largest);
}

}  // namespace

std::string heat_tables(const Comparison& comparison) {
  return R"(<div class="scale" aria-label="colours"><span class="h0">equal</span><span class="h1">)"
         R"(to 0.1 of the tolerance</span>)"
         R"(<span class="h2">to 0.5</span><span class="h3">to 1</span><span class="h4">✗ beyond it</span></div>)" +
         heat_part(comparison, HeatDetail::kinds) + "<details><summary>Every operator of the step</summary>\n" +
         heat_part(comparison, HeatDetail::nodes) + "</details>\n";
}

std::string time_table(const Comparison& comparison) {
  if (!comparison.options.speed) return {};
  std::vector<Times> devices;
  std::map<std::string, double> slowest;
  for (const DeviceRun& run : comparison.runs) {
    devices.push_back(times_by_base(run));
    for (const auto& [op, time] : devices.back()) slowest[op] = std::max(slowest[op], time.seconds);
  }
  std::vector<std::pair<std::string, double>> order(slowest.begin(), slowest.end());
  std::ranges::stable_sort(order, std::ranges::greater{}, &std::pair<std::string, double>::second);
  std::string rows;
  for (const auto& [op, seconds] : order) {
    rows += fmt::format("<tr><th scope=\"row\">{}</th>", breakable(op));
    for (std::size_t d = 0; d < devices.size(); ++d) {
      const auto found = devices[d].find(op);
      rows += found == devices[d].end() ? "<td class=\"soft\">–</td>" : time_cell(found->second, order[0].second, d);
    }
    rows += "</tr>\n";
  }
  return scrolling_table("time by operator", header(comparison, "operator"), rows);
}

}  // namespace concord
