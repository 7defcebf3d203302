// A report for people in a terminal.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "concord/cli/command.hpp"
#include "concord/cli/counted.hpp"
#include "concord/cli/data/check_report.hpp"
#include "concord/core/human_bytes.hpp"
#include "concord/core/utf8.hpp"

namespace concord::cli {
namespace {

constexpr std::size_t kShownClasses = 20, kShownBad = 20, kShownGroups = 10, kShownMembers = 4;

std::string or_dash(const std::optional<double>& number) { return number ? fmt::format("{:.6g}", *number) : "-"; }

std::string more_text(std::size_t all, std::size_t shown, std::string_view what) {
  return all <= shown ? "" : fmt::format("  … and {} more {}; --json and --html list all of them\n", all - shown, what);
}

std::string table_of_parts(const CheckReport& report) {
  std::vector<std::vector<std::string>> rows{{"part"}, {"samples"}, {"bad"}};
  bool has_bytes = false;
  for (const CheckedPart& part : report.parts) {
    rows[0].push_back(part.name);
    rows[1].push_back(fmt::format("{}", part.samples));
    rows[2].push_back(fmt::format("{}", part.bad));
    has_bytes = has_bytes || part.bytes > 0;
  }
  if (has_bytes) {
    rows.push_back({"stored"});
    for (const CheckedPart& part : report.parts) rows.back().push_back(human_bytes(part.bytes));
  }
  const std::size_t shown = std::min(report.class_names.size(), kShownClasses);
  for (std::size_t i = 0; i < shown; ++i) {
    rows.push_back({"class " + printable(report.class_names[i])});
    for (const CheckedPart& part : report.parts) {
      rows.back().push_back(fmt::format("{}", i < part.class_counts.size() ? part.class_counts[i] : 0));
    }
  }
  return table(rows) + more_text(report.class_names.size(), shown, "classes");
}

std::string counts_text(const std::map<std::string, std::int64_t>& counts) {
  std::string text;
  for (const auto& [what, count] : counts) text += fmt::format("{}{} {}", text.empty() ? "" : "; ", count, what);
  return text;
}

std::string images_text(const CheckedImages& images) {
  if (images.shorter_sides.empty()) return {};
  const auto size = [](const CheckedImages::Size& one) {
    return fmt::format("{} x {} ({})", one.width, one.height, printable(one.name));
  };
  std::string text =
      fmt::format("\nSizes (width x height): median {} x {}\n  smallest {}\n  largest  {}\n", images.median_width,
                  images.median_height, size(images.smallest), size(images.largest));
  text += fmt::format("Formats: {}\n", counts_text(images.formats));
  if (!images.special.empty()) text += fmt::format("Of them: {}\n", counts_text(images.special));
  return text;
}

std::string masks_text(const CheckedMasks& masks) {
  const auto all = static_cast<double>(masks.all());
  if (all == 0) return {};
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < std::min(masks.pixels.size(), kShownClasses); ++i) {
    parts.push_back(fmt::format("{}: {:.2f} %", i, 100 * static_cast<double>(masks.pixels[i]) / all));
  }
  if (masks.pixels.size() > kShownClasses)
    parts.push_back(fmt::format("… {} more", masks.pixels.size() - kShownClasses));
  if (masks.no_class > 0) {
    parts.push_back(fmt::format("without a class (255): {:.2f} %", 100 * static_cast<double>(masks.no_class) / all));
  }
  return fmt::format("Pixels of masks by class: {}\n", fmt::join(parts, "; "));
}

std::string columns_text(const CheckReport& report) {
  if (report.columns.empty()) return {};
  std::vector<std::vector<std::string>> rows{
      {"column", "part", "role", "type", "values", "missing", "least", "largest", "mean", "deviation"}};
  for (const CheckedColumn& column : report.columns) {
    rows.push_back({column.name.empty() ? column.role + "s" : printable(column.name), column.part, column.role,
                    column.type, fmt::format("{}", column.values), fmt::format("{}", column.missing),
                    or_dash(column.least), or_dash(column.largest), or_dash(column.mean), or_dash(column.deviation)});
  }
  return "\n" + table(rows);
}

std::string bad_text(const CheckReport& report) {
  if (report.bad.empty()) return {};
  std::string text = "\nBad samples:\n";
  const std::size_t shown = std::min(report.bad.size(), kShownBad);
  for (std::size_t i = 0; i < shown; ++i) {
    text += fmt::format("  {}: {}\n", printable(report.bad[i].name), report.bad[i].reason);
  }
  return text + more_text(report.bad.size(), shown, "bad samples");
}

std::string group_text(const CheckReport& report, const DuplicateGroup& group) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min(group.members.size(), kShownMembers); ++i) {
    const DuplicateGroup::Member& member = group.members[i];
    std::string name = printable(member.name);
    if (report.parts.size() > 1) name = fmt::format("{} {}", report.parts[member.part].name, name);
    if (group.has_other_labels) name += fmt::format(" ({})", printable(member.label));
    names.push_back(std::move(name));
  }
  std::string text = fmt::format("  {}", fmt::join(names, " = "));
  if (group.members.size() > kShownMembers) text += fmt::format(" and {} more", group.members.size() - kShownMembers);
  if (!group.has_equal_bytes) text += " (equal pixels in different files)";
  return text + "\n";
}

std::string duplicates_text(const CheckReport& report) {
  if (report.duplicates.empty()) return "\nNo sample is there twice.\n";
  std::string text;
  const auto leaks = static_cast<std::size_t>(report.leaks());
  if (leaks > 0) {
    text += fmt::format("\nLEAKAGE: {} of one part {} also in another; a test on what was trained on proves nothing:\n",
                        counted(leaks, "sample"), leaks == 1 ? "is" : "are");
    for (std::size_t i = 0; i < std::min(leaks, kShownGroups); ++i) text += group_text(report, report.duplicates[i]);
    text += more_text(leaks, kShownGroups, "such samples");
  }
  const std::size_t others = report.duplicates.size() - leaks;
  if (others == 0) return text;
  text += fmt::format("\n{} {} more than once in a part:\n", counted(others, "sample"), others == 1 ? "is" : "are");
  for (std::size_t i = leaks; i < leaks + std::min(others, kShownGroups); ++i) {
    text += group_text(report, report.duplicates[i]);
  }
  text += more_text(others, kShownGroups, "such samples");
  const auto contradictions = std::ranges::count_if(report.duplicates, &DuplicateGroup::has_other_labels);
  if (contradictions > 0) {
    text += fmt::format("{} of all these have different labels, which stand in parentheses.\n", contradictions);
  }
  return text;
}

std::string advice_text(const CheckReport& report) {
  std::string text;
  if (report.images && !report.images->mean.empty()) {
    text += fmt::format("\nMean and deviation of the channels of the {} images, as options:\n  {}\n",
                        report.parts[0].name, normalisation_options(*report.images));
  }
  if (report.imbalance() >= CheckReport::kUnbalanced) {
    text += fmt::format(
        "\nThe largest class has {:.1f} times as many samples as the smallest one; to weigh them alike:\n"
        "  --class-weights balanced\n",
        report.imbalance());
  }
  return text;
}

}  // namespace

std::int64_t CheckReport::samples() const {
  std::int64_t all = 0;
  for (const CheckedPart& part : parts) all += part.samples;
  return all;
}

std::int64_t CheckedMasks::all() const { return std::accumulate(pixels.begin(), pixels.end(), no_class); }

std::int64_t CheckReport::leaks() const { return std::ranges::count_if(duplicates, &DuplicateGroup::is_across_parts); }

double CheckReport::imbalance() const {
  std::int64_t least = 0, most = 0;
  for (const std::int64_t count : parts.empty() ? std::vector<std::int64_t>() : parts[0].class_counts) {
    if (count > 0) least = least == 0 ? count : std::min(least, count);
    most = std::max(most, count);
  }
  return least == 0 ? 1 : static_cast<double>(most) / static_cast<double>(least);
}

std::string normalisation_options(const CheckedImages& images) {
  return fmt::format("--mean {:.4f} --deviation {:.4f}", fmt::join(images.mean, ","), fmt::join(images.deviation, ","));
}

std::string check_text(const CheckReport& report) {
  std::int64_t bad = 0;
  for (const CheckedPart& part : report.parts) bad += part.bad;
  std::string text = fmt::format("{}: {}", printable(report.spec), counted(report.samples(), "sample"));
  if (!report.class_names.empty()) text += fmt::format(", {}", counted(report.class_names.size(), "class", "classes"));
  text += fmt::format(", {}\n", bad == 0 ? "none of them bad" : fmt::format("{} of them bad", bad));
  // What spoils a result comes before what is good to know.
  std::string duplicates = duplicates_text(report);
  if (report.leaks() > 0) {
    text += duplicates;
    duplicates.clear();
  }
  text += "\n" + table_of_parts(report);
  if (report.images) text += images_text(*report.images);
  if (report.masks) text += masks_text(*report.masks);
  return text + columns_text(report) + bad_text(report) + duplicates + advice_text(report);
}

}  // namespace concord::cli
