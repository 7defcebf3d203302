// A report as one page, in the style of compare's page: tables with bars, pictures of every class, what is bad.
#include <fmt/format.h>

#include <algorithm>

#include "concord/cli/counted.hpp"
#include "concord/cli/data/check_report.hpp"
#include "concord/compare/report/html.hpp"
#include "concord/compare/report/page_style.hpp"
#include "concord/core/human_bytes.hpp"
#include "concord/core/version.hpp"

namespace concord::cli {
namespace {

using html::escaped;

constexpr std::size_t kMostGroups = 200, kMostBad = 2000;

constexpr const char* kPictureStyle = R"css(
.pictures { display: flex; flex-wrap: wrap; gap: 8px; margin: 6px 0 14px; }
.pictures figure { margin: 0; width: 96px; } .pictures img { max-width: 96px; max-height: 96px; display: block; }
.pictures img.small { width: 56px; image-rendering: pixelated; }
.pictures figcaption { font-size: 0.75rem; color: var(--soft); overflow-wrap: anywhere; }
td.graph { min-width: 140px; } td.graph .bar { margin: 6px auto 0 0; height: 9px; }
td.long { text-align: left; white-space: normal; overflow-wrap: anywhere; }
)css";

std::string section_of(std::string_view title, std::string_view explanation, const std::string& content) {
  if (content.empty()) return {};
  return fmt::format("<h2>{}</h2>\n<p class=\"soft\">{}</p>\n{}", title, explanation, content);
}

std::string scrolled(const std::string& head, const std::string& body) {
  return fmt::format(
      "<div class=\"scroll\" tabindex=\"0\"><table><thead><tr>{}</tr></thead><tbody>\n{}</tbody></table></div>\n", head,
      body);
}

std::string bar_cell(std::int64_t count, std::int64_t most) {
  const double width = most == 0 ? 0 : 100.0 * static_cast<double>(count) / static_cast<double>(most);
  return fmt::format("<td class=\"graph\"><span class=\"bar s0\" style=\"width:{:.1f}%\"></span></td>", width);
}

std::string verdict_of(const CheckReport& report) {
  std::int64_t bad = 0;
  for (const CheckedPart& part : report.parts) bad += part.bad;
  std::string text = bad == 0 ? "<div class=\"verdict\"><b>✓ Every sample can be read.</b>"
                              : fmt::format("<div class=\"verdict bad\"><b>✗ {} bad.</b>",
                                            bad == 1 ? "One sample is" : fmt::format("{} samples are", bad));
  if (const std::int64_t leaks = report.leaks(); leaks > 0) {
    text += fmt::format("<p><b>Leakage:</b> {} of one part are also in another.</p>",
                        leaks == 1 ? "one sample" : fmt::format("{} samples", leaks));
  }
  if (const auto others = static_cast<std::int64_t>(report.duplicates.size()) - report.leaks(); others > 0) {
    text += fmt::format("<p>{} more than once in a part.</p>",
                        others == 1 ? "One sample is there" : fmt::format("{} samples are there", others));
  }
  if (report.images && !report.images->mean.empty()) {
    text += fmt::format("<p>Mean and deviation of the {} images: <code>{}</code></p>", escaped(report.parts[0].name),
                        normalisation_options(*report.images));
  }
  if (report.imbalance() >= CheckReport::kUnbalanced) {
    text += fmt::format(
        "<p>The largest class has {:.1f} times as many samples as the smallest one; to weigh them "
        "alike: <code>--class-weights balanced</code></p>",
        report.imbalance());
  }
  for (const std::string& warning : report.warnings) text += fmt::format("<p class=\"soft\">{}</p>", escaped(warning));
  return text + "</div>\n";
}

std::string parts_table(const CheckReport& report) {
  std::string body;
  for (const CheckedPart& part : report.parts) {
    body += fmt::format("<tr><th>{}<small>{}</small></th><td>{}</td><td>{}</td><td>{}</td></tr>\n", escaped(part.name),
                        escaped(part.source), part.samples, part.bad, part.bytes == 0 ? "–" : human_bytes(part.bytes));
  }
  return scrolled("<th>part</th><th>samples</th><th>bad</th><th>stored</th>", body);
}

std::string classes_table(const CheckReport& report) {
  if (report.class_names.empty()) return {};
  std::string head = "<th>class</th>", body;
  for (const CheckedPart& part : report.parts) head += fmt::format("<th>{}</th>", escaped(part.name));
  head += fmt::format("<th>{}</th>", escaped(report.parts[0].name));
  std::int64_t most = 0;
  for (const std::int64_t count : report.parts[0].class_counts) most = std::max(most, count);
  for (std::size_t i = 0; i < report.class_names.size(); ++i) {
    body += fmt::format("<tr><th>{}</th>", escaped(report.class_names[i]));
    const auto count_in = [&](const CheckedPart& part) {
      return i < part.class_counts.size() ? part.class_counts[i] : 0;
    };
    for (const CheckedPart& part : report.parts) body += fmt::format("<td>{}</td>", count_in(part));
    body += bar_cell(count_in(report.parts[0]), most) + "</tr>\n";
  }
  return scrolled(head, body);
}

std::string size_row(std::string_view what, const CheckedImages::Size& size) {
  return fmt::format("<tr><th>{}</th><td>{} × {}</td><td class=\"long\">{}</td></tr>\n", what, size.width, size.height,
                     escaped(size.name));
}

std::string counts_rows(const std::map<std::string, std::int64_t>& counts) {
  std::string rows;
  for (const auto& [what, count] : counts) {
    rows += fmt::format("<tr><th>{}</th><td>{}</td><td></td></tr>\n", escaped(what), count);
  }
  return rows;
}

std::string sizes_section(const CheckReport& report) {
  if (!report.images || report.images->shorter_sides.empty()) return {};
  const CheckedImages& images = *report.images;
  std::string body = size_row("smallest", images.smallest);
  body += fmt::format("<tr><th>median</th><td>{} × {}</td><td></td></tr>\n", images.median_width, images.median_height);
  body += size_row("largest", images.largest) + counts_rows(images.formats) + counts_rows(images.special);
  std::string bars;
  std::int64_t most = 0;
  for (const CheckedImages::Bin& bin : images.shorter_sides) most = std::max(most, bin.count);
  for (const CheckedImages::Bin& bin : images.shorter_sides) {
    const std::string range =
        bin.first == bin.last ? fmt::format("{}", bin.first) : fmt::format("{} – {}", bin.first, bin.last);
    bars += fmt::format("<tr><th>{}</th><td>{}</td>{}</tr>\n", range, bin.count, bar_cell(bin.count, most));
  }
  return scrolled("<th></th><th>width × height, or images</th><th></th>", body) + "<h3>Shorter side in pixels</h3>\n" +
         scrolled("<th>pixels</th><th>images</th><th></th>", bars);
}

std::string masks_table(const CheckReport& report) {
  if (!report.masks || report.masks->all() == 0) return {};
  const CheckedMasks& masks = *report.masks;
  std::int64_t most = masks.no_class;
  for (const std::int64_t count : masks.pixels) most = std::max(most, count);
  const auto row = [&](const std::string& name, std::int64_t count) {
    return fmt::format("<tr><th>{}</th><td>{}</td>{}</tr>\n", name, count, bar_cell(count, most));
  };
  std::string body;
  for (std::size_t i = 0; i < masks.pixels.size(); ++i) body += row(fmt::format("{}", i), masks.pixels[i]);
  if (masks.no_class > 0) body += row("without a class (255)", masks.no_class);
  return scrolled("<th>class</th><th>pixels</th><th></th>", body);
}

std::string columns_table(const CheckReport& report) {
  if (report.columns.empty()) return {};
  const auto number = [](const std::optional<double>& value) { return value ? fmt::format("{:.6g}", *value) : "–"; };
  std::string body;
  for (const CheckedColumn& column : report.columns) {
    body += fmt::format("<tr><th>{}<small>{} of {}</small></th><td>{}</td><td>{}</td><td>{}</td>",
                        escaped(column.name.empty() ? column.role + "s" : column.name), column.role,
                        escaped(column.part), escaped(column.type), column.values, column.missing);
    for (const auto& value : {column.least, column.largest, column.mean, column.deviation}) {
      body += fmt::format("<td>{}</td>", number(value));
    }
    body += "</tr>\n";
  }
  return scrolled(
      "<th>column</th><th>type</th><th>values</th><th>missing</th><th>least</th><th>largest</th>"
      "<th>mean</th><th>deviation</th>",
      body);
}

std::string pictures(const CheckReport& report) {
  std::string text;
  std::vector<const Thumbnail*> sorted;
  for (const Thumbnail& one : report.thumbnails) sorted.push_back(&one);
  std::ranges::stable_sort(sorted, {}, &Thumbnail::class_index);
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const Thumbnail& one = *sorted[i];
    if (i == 0 || sorted[i - 1]->class_index != one.class_index) {
      const bool is_class = one.class_index < report.class_names.size();
      text += fmt::format("{}<h3>{}</h3>\n<div class=\"pictures\">\n", i == 0 ? "" : "</div>\n",
                          is_class ? escaped(report.class_names[one.class_index]) : "samples");
    }
    const bool is_small = std::max(one.width, one.height) < 56;
    text += fmt::format(
        "<figure><img{} src=\"{}\" alt=\"{}\" title=\"{} ({} × {})\">{}</figure>\n", is_small ? " class=\"small\"" : "",
        one.url, escaped(one.label), escaped(one.name), one.width, one.height,
        report.class_names.empty() ? fmt::format("<figcaption>{}</figcaption>", escaped(one.label)) : "");
  }
  return text.empty() ? text : text + "</div>\n";
}

std::string rest_of(std::size_t all, std::size_t most) {
  return all <= most ? "" : fmt::format("<p class=\"soft\">… and {} more; --json lists all of them.</p>\n", all - most);
}

std::string duplicates_table(const CheckReport& report) {
  if (report.duplicates.empty()) return {};
  std::string body;
  for (std::size_t i = 0; i < std::min(report.duplicates.size(), kMostGroups); ++i) {
    const DuplicateGroup& group = report.duplicates[i];
    std::string kind = group.is_across_parts ? "across parts" : "in one part";
    if (group.has_other_labels) kind += ", different labels";
    if (!group.has_equal_bytes) kind += ", equal pixels in different files";
    std::string members;
    for (const DuplicateGroup::Member& member : group.members) {
      members += fmt::format("{}{} <code>{}</code> {}", members.empty() ? "" : "<br>",
                             escaped(report.parts[member.part].name), escaped(member.name), escaped(member.label));
    }
    body +=
        fmt::format("<tr><th>{}</th><td>{}</td><td class=\"long\">{}</td></tr>\n", kind, group.members.size(), members);
  }
  return scrolled("<th>kind</th><th>samples</th><th></th>", body) + rest_of(report.duplicates.size(), kMostGroups);
}

std::string bad_table(const CheckReport& report) {
  if (report.bad.empty()) return {};
  std::string body;
  for (std::size_t i = 0; i < std::min(report.bad.size(), kMostBad); ++i) {
    const BadSample& bad = report.bad[i];
    body += fmt::format("<tr><th>{}<small>{}</small></th><td class=\"long\">{}</td></tr>\n", escaped(bad.name),
                        escaped(bad.part), escaped(bad.reason));
  }
  return scrolled("<th>sample</th><th>reason</th>", body) + rest_of(report.bad.size(), kMostBad);
}

}  // namespace

std::string check_page(const CheckReport& report) {
  const std::string title = escaped(report.spec);
  std::string page = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width, initial-scale=1\"><title>{} – concord data "
      "check</title><style>{}{}</style></head>\n"
      "<body><main>\n<h1>{}</h1>\n<p class=\"soft\">{}{}. Concord {}.</p>\n",
      title, kPageStyle, kPictureStyle, title, counted(report.samples(), "sample"),
      report.class_names.empty() ? "" : fmt::format(" in {}", counted(report.class_names.size(), "class", "classes")),
      kVersion);
  page += verdict_of(report);
  page += section_of("Bad samples", "They cannot be read, or not be learned from.", bad_table(report));
  page += section_of("Duplicates",
                     "Equal samples. Those across parts come first: a test on what was trained on proves nothing.",
                     duplicates_table(report));
  page += section_of("Parts", "What the set comes in.", parts_table(report));
  page += section_of("Classes", "Samples of each class; the bars show the first part.", classes_table(report));
  page += section_of("Sizes", "Of the images that can be read, upright.", sizes_section(report));
  page += section_of("Masks", "Pixels of each class in the masks that can be read.", masks_table(report));
  page += section_of("Columns", "As they are stored.", columns_table(report));
  page += section_of("Pictures", "Evenly spaced samples of the first part.", pictures(report));
  return page + "</main></body></html>\n";
}

}  // namespace concord::cli
