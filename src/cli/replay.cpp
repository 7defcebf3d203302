// concord replay: one operator alone, from the file that `concord compare --save-case` wrote. Exit code 1 when it
// diverges.
#include <fmt/format.h>

#include <iostream>

#include "concord/cli/case_network.hpp"
#include "concord/cli/compare_program.hpp"
#include "concord/cli/options.hpp"
#include "concord/compare/cases/operator_case.hpp"
#include "concord/core/json.hpp"

namespace concord::cli {
namespace {

struct ReplayArguments {
  std::string file;
  DeviceOption device;
  TraceOption trace;
  bool json = false, start = false;
};

/// `report` is CaseReplay::json.
std::string as_text(const nlohmann::json& report) {
  const auto text_at = [](const nlohmann::json& json, const char* key) { return json.at(key).get<std::string>(); };
  const nlohmann::json &network = report.at("network"), &of_case = report.at("case");
  const std::string where = network.contains("program")
                                ? text_at(network, "program")
                                : fmt::format("{}, batch {}, {}", text_at(network, "model"), text_at(network, "batch"),
                                              text_at(network, "precision"));
  std::string text = fmt::format(
      "{} of {}: {}{}, {}\nthe case comes from {}, kernel {}; here {}, kernel {}\n\n", text_at(report, "node"), where,
      text_at(report, "operator"), report.at("fused").get<bool>() ? ", fused" : "", text_at(report, "shapes"),
      text_at(of_case, "device"), text_at(of_case, "kernel"), text_at(report, "device"), text_at(report, "kernel"));
  // JSON has no infinity.
  const auto number = [](const nlohmann::json& json) {
    return json.is_null() ? std::string("inf") : fmt::format("{:.3g}", json.get<double>());
  };
  std::vector<std::vector<std::string>> rows{
      {"value", "error", "tolerance", "error in the case", "difference from the case"}};
  for (const nlohmann::json& value : report.at("values")) {
    rows.push_back({text_at(value, "value"), number(value.at("error")), number(value.at("tolerance")),
                    number(value.at("error_in_case")), number(value.at("difference_from_case"))});
  }
  return text + table(rows);
}

/// What a file gives must fit together: any other error of it is one of its content.
template <class Work>
auto of_file(const std::string& file, const Work& work) {
  try {
    return work();
  } catch (const OutOfMemory&) {
    throw;
  } catch (const Error& error) {
    throw FormatError(fmt::format("{}: {}", file, error.what()));
  }
}

CompareReply of_network(const ReplayArguments& options, const OperatorCase& operator_case) {
  const auto step = of_file(options.file, [&] { return case_step(operator_case.network); });
  const DevicePtr device = options.device.open();
  const CaseReplay result = replay(operator_case, step->graph, step->loss, device, step->precision);
  return {result.json(operator_case, device->info()), result.diverging(operator_case, device->info())};
}

CompareReply of_program(const ReplayArguments& options, const CaseProgram& program) {
  if (!options.start) {
    std::string arguments;
    for (const std::string& argument : program.arguments) arguments += fmt::format(" \"{}\"", argument);
    throw ArgumentError(fmt::format("the case is from a training of the program {}{}: --start starts it with {}",
                                    program.path, arguments, arguments.empty() ? "no argument" : "these arguments"));
  }
  InputFiles().add(program.path).require_kept({{"--trace", options.trace.file}});
  require_writable(options.trace.file);
  return replay_program(program.path, program.arguments, options.file, options.device.selector, options.trace.file);
}

void run_replay(const ReplayArguments& options) {
  const InputFiles inputs = InputFiles().add(options.file);
  inputs.require_kept({{"--trace", options.trace.file}});
  const OperatorCase operator_case = read_case(options.file);
  const auto program = of_file(options.file, [&] { return program_of(operator_case.network); });
  CompareReply reply;
  if (program) {
    reply = of_program(options, *program);
  } else {
    options.trace.around(inputs, [&] { reply = of_network(options, operator_case); });
  }
  if (!reply.text.empty()) std::cout << (options.json ? reply.text : read_json(reply.text, "the reply", as_text));
  require_agreement(reply);
}

}  // namespace

void add_replay(CLI::App& app) {
  CLI::App* command = app.add_subcommand("replay", "Run one operator alone, from a file of compare --save-case");
  const auto options = std::make_shared<ReplayArguments>();
  command->add_option("case", options->file, "The file of the case")->required()->check(file_name());
  options->device.add(*command);
  command->add_flag("--json", options->json, "Print JSON");
  command->add_flag("--start", options->start, "Start the program that the case names");
  options->trace.add(*command);
  command->callback([options] { run_replay(*options); });
}

}  // namespace concord::cli
