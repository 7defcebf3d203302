// The results of a comparison as text and files.
#include "concord/compare/report/outputs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "concord/core/atomic_file.hpp"
#include "concord/core/log.hpp"
#include "concord/core/platform.hpp"

namespace concord {

namespace {

void save_case(const Comparison& comparison, const std::string& file,
               const std::map<std::string, std::string>& network) {
  const auto has_case = [](const DeviceRun& run) { return run.kept_case.has_value(); };
  auto found = std::ranges::find_if(comparison.runs.begin() + 1, comparison.runs.end(), has_case);
  if (found == comparison.runs.end()) found = std::ranges::find_if(comparison.runs, has_case);
  if (found == comparison.runs.end()) {
    log(LogLevel::warning,
        fmt::format("no operator diverged, so {} was not written; --case NODE saves a node that did not diverge",
                    file));
    return;
  }
  OperatorCase kept = *found->kept_case;
  kept.network = network;
  write_case(file, kept);
}

}  // namespace

std::string CompareOutputs::text(const Comparison& comparison) const {
  return prints_json ? comparison.json() + "\n" : comparison.table();
}

void CompareOutputs::write_files(const Comparison& comparison,
                                 const std::map<std::string, std::string>& network) const {
  const auto write = [](const std::string& file, const std::string& text) {
    write_file_atomically(file, std::as_bytes(std::span(text)));
  };
  if (!html_file.empty()) write(html_file, comparison.html());
  if (!json_file.empty()) write(json_file, comparison.json(JsonDetail::operators) + "\n");
  if (!case_file.empty()) save_case(comparison, case_file, network);
}

std::string CompareOutputs::error(const Comparison& comparison) {
  const std::string why = comparison.disagreement();
  return why.empty() ? why : fmt::format("{}: {}", comparison.verdict(), why);
}

}  // namespace concord
