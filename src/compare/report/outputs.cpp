// The results of a comparison as text and files.
#include "concord/compare/report/outputs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <vector>

#include "concord/compare/run/deviation.hpp"
#include "concord/core/atomic_file.hpp"
#include "concord/core/log.hpp"
#include "concord/core/platform.hpp"

namespace concord {

namespace {

void save_case(const Comparison& comparison, const std::string& file,
               const std::map<std::string, std::string>& network) {
  std::vector<const OperatorCase*> cases;  // the reference's last, but behind none that does not diverge
  for (const DeviceRun& run : comparison.runs) {
    if (run.kept_case) cases.push_back(&*run.kept_case);
  }
  if (comparison.runs.front().kept_case) std::ranges::rotate(cases, cases.begin() + 1);
  std::ranges::stable_partition(cases, [](const OperatorCase* one) { return diverges(*one); });
  if (cases.empty()) {
    log(LogLevel::warning,
        fmt::format("no operator diverged, so {} was not written; --case NODE saves a node that did not diverge",
                    file));
    return;
  }
  OperatorCase kept = *cases.front();
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
