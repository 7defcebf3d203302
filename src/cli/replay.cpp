// concord replay: one operator alone, from the file that `concord compare --save-case` wrote. Exit code 1 when it
// diverges.
#include <fmt/format.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "case_network.hpp"
#include "concord/compare/operator_case.hpp"
#include "options.hpp"

namespace concord::cli {
namespace {

struct Options {
  std::string file;
  DeviceOption device;
  TraceOption trace;
  bool json = false;
};

std::string as_text(const OperatorCase& operator_case, const CaseReplay& replay, const DeviceInfo& device) {
  const auto& network = operator_case.network;
  std::string text =
      fmt::format("{} of {}, batch {}, {}: {}{}, {}\nthe case is of {}, kernel {}; here {}, kernel {}\n\n",
                  operator_case.node, network.at("model"), network.at("batch"), network.at("precision"),
                  operator_case.op, operator_case.fused ? " as fused" : "", replay.shapes, operator_case.device,
                  operator_case.kernel, device.id, replay.kernel);
  std::vector<std::vector<std::string>> rows{{"value", "error", "allowed", "error in the case", "from its result"}};
  for (const CaseReplay::Result& result : replay.results) {
    rows.push_back({result.name, fmt::format("{:.3g}", result.error), fmt::format("{:.3g}", result.tolerance),
                    fmt::format("{:.3g}", result.case_error), fmt::format("{:.3g}", result.from_case)});
  }
  return text + table(rows);
}

std::string as_json(const OperatorCase& operator_case, const CaseReplay& replay, const DeviceInfo& device) {
  nlohmann::json json{
      {"node", operator_case.node},    {"operator", operator_case.op},
      {"fused", operator_case.fused},  {"network", operator_case.network},
      {"shapes", replay.shapes},       {"case", {{"device", operator_case.device}, {"kernel", operator_case.kernel}}},
      {"device", device.id},           {"kernel", replay.kernel},
      {"diverges", replay.diverges()}, {"values", nlohmann::json::array()}};
  for (const CaseReplay::Result& result : replay.results) {
    json["values"].push_back({{"value", result.name},
                              {"error", result.error},
                              {"tolerance", result.tolerance},
                              {"error_in_case", result.case_error},
                              {"difference_from_case", result.from_case}});
  }
  return json_text(json);
}

void run(const Options& options) {
  const OperatorCase operator_case = read_case(options.file);
  const std::unique_ptr<TrainingStep> step = case_step(operator_case.network);
  const DevicePtr device = options.device.open();
  const CaseReplay result = replay(operator_case, step->graph, step->loss, device, step->precision);
  std::cout << (options.json ? as_json : as_text)(operator_case, result, device->info());
  if (result.diverges()) throw Error(fmt::format("{} diverges on {}", operator_case.node, device->info().id));
}

}  // namespace

void add_replay(CLI::App& app) {
  CLI::App* command = app.add_subcommand("replay", "Run one operator alone, from a file of compare --save-case");
  const auto options = std::make_shared<Options>();
  command->add_option("case", options->file, "The file")->required()->check(CLI::ExistingFile);
  options->device.add(*command);
  command->add_flag("--json", options->json, "Print JSON");
  options->trace.add(*command);
  command->callback([options] { options->trace.around([&] { run(*options); }); });
}

}  // namespace concord::cli
