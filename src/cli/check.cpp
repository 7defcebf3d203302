// concord check: what an ONNX file takes and gives, and whether Concord can run it.
#include "concord/core/check.hpp"

#include <fmt/format.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "concord/cli/command.hpp"
#include "concord/cli/counted.hpp"
#include "concord/core/utf8.hpp"
#include "concord/onnx/inspection.hpp"

namespace concord::cli {
namespace {

struct CheckArguments {
  std::string file;
  bool json = false;
};

std::string domain_name(const std::string& domain) { return domain.empty() ? "ai.onnx" : domain; }

nlohmann::json json_of(const onnx::Declaration& declaration) {
  nlohmann::json json{{"name", declaration.name}, {"type", onnx::name_of(declaration.type)}, {"shape", nullptr}};
  if (!declaration.shape) return json;
  json["shape"] = nlohmann::json::array();
  for (const onnx::Declaration::Size& size : *declaration.shape) {
    if (size.size >= 0) {
      json["shape"].push_back(size.size);
    } else {
      json["shape"].push_back(size.name);  // empty: free and without a name
    }
  }
  return json;
}

nlohmann::json json_of(const onnx::Inspection& inspection) {
  nlohmann::json json{{"supported", inspection.is_supported()},  {"ir_version", inspection.ir_version},
                      {"producer", inspection.producer},         {"opsets", nlohmann::json::object()},
                      {"inputs", nlohmann::json::array()},       {"outputs", nlohmann::json::array()},
                      {"known_inputs", inspection.shape_inputs}, {"operators", inspection.operators},
                      {"parameters", inspection.parameters},     {"parameter_elements", inspection.parameter_elements},
                      {"missing", nlohmann::json::array()}};
  for (const auto& [domain, version] : inspection.opsets) json["opsets"][domain_name(domain)] = version;
  for (const onnx::Declaration& input : inspection.inputs) json["inputs"].push_back(json_of(input));
  for (const onnx::Declaration& output : inspection.outputs) json["outputs"].push_back(json_of(output));
  for (const onnx::Missing& missing : inspection.missing) {
    json["missing"].push_back({{"node", missing.node},
                               {"operation", missing.operation},
                               {"reason", missing.reason},
                               {"in_branch", missing.in_branch}});
  }
  return json;
}

std::string text_of(const std::string& file, const onnx::Inspection& inspection) {
  std::string opsets;
  for (const auto& [domain, version] : inspection.opsets) {
    opsets += fmt::format("{}{} {}", opsets.empty() ? "" : ", ", printable(domain_name(domain)), version);
  }
  std::string text =
      fmt::format("{}: version {} of the format, operators of {}{}\n", file, inspection.ir_version, opsets,
                  inspection.producer.empty() ? "" : ", made by " + printable(inspection.producer));
  const auto list = [&](const char* what, const std::vector<onnx::Declaration>& declarations) {
    for (const onnx::Declaration& one : declarations) {
      text += fmt::format("{} {}: {}\n", what, printable(one.name), one.str());
    }
  };
  list("input", inspection.inputs);
  list("output", inspection.outputs);
  for (const std::string& name : inspection.shape_inputs) {
    text += fmt::format("known {}: shapes depend on its values, so they are needed when the file is loaded\n",
                        printable(name));
  }
  text += fmt::format("parameters: {}, {}\noperators:", counted(inspection.parameters, "tensor"),
                      counted(inspection.parameter_elements, "number"));
  for (const auto& [name, count] : inspection.operators) text += fmt::format(" {} {}", count, printable(name));
  text += "\n";
  for (const onnx::Missing& missing : inspection.missing) {
    text += fmt::format("missing {}{}: {}{}\n", printable(missing.operation),
                        missing.node.empty() ? "" : fmt::format(" '{}'", printable(missing.node)), missing.reason,
                        missing.in_branch ? " (in a branch: an error only if the branch is taken)" : "");
  }
  return text;
}

void run_check(const CheckArguments& options) {
  const onnx::Inspection inspection = onnx::inspect(options.file);
  std::cout << (options.json ? json_text(json_of(inspection)) : text_of(options.file, inspection));
  CONCORD_CHECK(inspection.is_supported(), NotSupported, "{} asks for what Concord does not support", options.file);
}

}  // namespace

void add_check(CLI::App& app) {
  CLI::App* command = app.add_subcommand("check", "Show what an ONNX file has, and what of it is not supported");
  const auto options = std::make_shared<CheckArguments>();
  command->add_option("FILE", options->file, "An .onnx file")->required();
  command->add_flag("--json", options->json, "Print JSON");
  command->callback([options] { run_check(*options); });
}

}  // namespace concord::cli
