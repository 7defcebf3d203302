// concord data check: reads a whole data set, and says what is in it and what is wrong with it.
#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <memory>

#include "concord/cli/command.hpp"
#include "concord/cli/counted.hpp"
#include "concord/cli/data/check_samples.hpp"
#include "concord/cli/data/data_command.hpp"
#include "concord/cli/data/rows.hpp"
#include "concord/cli/options.hpp"
#include "concord/cli/validator.hpp"
#include "concord/core/atomic_file.hpp"
#include "concord/core/check.hpp"
#include "concord/core/log.hpp"

namespace concord::cli {
namespace {

struct DataCheckArguments {
  std::string spec, html;
  ReaderThreads threads;
  bool json = false, quiet = false;
};

/// Keeps the library's warnings while it lives; they are printed too.
class KeptWarnings {
 public:
  explicit KeptWarnings(std::vector<std::string>& kept) : is_verbose_(log_enabled(LogLevel::info)) {
    set_log(
        [&kept](LogLevel level, std::string_view text) {
          if (level >= LogLevel::warning) kept.emplace_back(text);
          say_log(level, text);
        },
        is_verbose_ ? LogLevel::debug : LogLevel::warning);
  }
  KeptWarnings(const KeptWarnings&) = delete;
  KeptWarnings& operator=(const KeptWarnings&) = delete;
  ~KeptWarnings() { log_to_standard_error(is_verbose_); }

 private:
  bool is_verbose_;
};

CheckReport checked(const DataCheckArguments& options) {
  CheckReport report;
  report.spec = options.spec;
  const DataSpec spec = DataSpec::parse(options.spec);
  const KeptWarnings warnings(report.warnings);
  if (spec.kind == "csv") {
    check_tables(spec, report);
    return report;
  }
  const std::vector<StoredPart> parts = open_parts(spec);
  CONCORD_CHECK(!parts.empty(), ArgumentError, "{}: the set has no part", options.spec);
  const CheckOptions how{options.threads.get(), !options.html.empty(), options.quiet};
  const bool are_images = std::ranges::all_of(parts, [](const StoredPart& part) { return part.images != nullptr; });
  if (are_images) {
    check_images(parts, how, report);
  } else {
    check_arrays(parts, how, report);
  }
  const auto classes = std::ssize(report.class_names);
  if (spec.kind == "audio" && 2 * classes > parts[0].size()) {
    log(LogLevel::warning, fmt::format("{} has {} different labels for {} recordings; if they are transcripts, add "
                                       "transcripts=yes",
                                       options.spec, classes, parts[0].size()));
  }
  return report;
}

void run_data_check(const DataCheckArguments& options) {
  require_writable(options.html);
  catch_signals();
  CheckReport report;
  try {
    report = checked(options);
  } catch (const StoppedByUser&) {
    return say("concord: stopped; the set was not checked to its end");
  }
  if (!options.html.empty()) {
    const std::string page = check_page(report);
    write_file_atomically(options.html, std::as_bytes(std::span(page.data(), page.size())));
  }
  std::cout << (options.json ? check_json(report) : check_text(report)) << std::flush;
  std::int64_t bad = 0;
  for (const CheckedPart& part : report.parts) bad += part.bad;
  if (bad > 0)
    throw FormatError(
        fmt::format("{} of {} {} bad", bad, counted(report.samples(), "sample"), bad == 1 ? "is" : "are"));
}

}  // namespace

void add_data_check(CLI::App& data) {
  CLI::App* command = data.add_subcommand(
      "check", "Read every sample: counts, sizes, bad files, duplicates, mean and deviation; 1 if samples are bad");
  const auto options = std::make_shared<DataCheckArguments>();
  add_spec(*command, options->spec);
  command->add_flag("--json", options->json, "Print JSON");
  command->add_option("--html", options->html, "Write a page with pictures of every class to this file")
      ->check(file_name());
  options->threads.add(*command);
  command->add_flag("--quiet", options->quiet, "Print no progress");
  command->callback([options] { run_data_check(*options); });
}

}  // namespace concord::cli
