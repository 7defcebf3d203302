// Files of cases, and a case run alone.
#include "concord/compare/cases/operator_case.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "concord/compare/tolerance/magnitude.hpp"
#include "concord/compare/tolerance/tolerance.hpp"
#include "concord/core/check.hpp"
#include "concord/core/json.hpp"
#include "concord/core/text.hpp"

namespace concord {
namespace {

constexpr const char* kKey = "concord.case";
constexpr int kVersion = 1;

std::string prefixed(const char* kind, const std::string& name) { return fmt::format("{}/{}", kind, name); }

Tensor taken(io::TensorMap& tensors, const std::string& name, const std::filesystem::path& path) {
  const auto found = tensors.find(name);
  CONCORD_CHECK(found != tensors.end(), FormatError, "{}: the case has no tensor '{}'; write it again", path.string(),
                name);
  return std::move(found->second);
}

/// What kernels the operator had in that run, for the message.
struct Seen {
  std::string text;
  void add(const TraceEntry& entry) {
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", entry.op, entry.shapes);
  }
};

/// The file may be another's, or damaged.
void check_results(const OperatorCase& operator_case, const ReplayedNode& node) {
  CONCORD_CHECK(operator_case.outputs.size() == node.results.size(), FormatError,
                "the case has {} results, but {} computes {}", operator_case.outputs.size(), node.entry.op,
                node.results.size());
  for (std::size_t k = 0; k < node.results.size(); ++k) {
    const TensorSpec spec = node.results[k].spec();
    for (const Tensor& kept : {operator_case.expected[k], operator_case.results[k]}) {
      CONCORD_CHECK(kept.spec() == spec, FormatError, "the case's '{}' is {}, but {} computes {}",
                    operator_case.outputs[k], kept.spec().str(), node.entry.op, spec.str());
    }
  }
}

CaseReplay result_of(const OperatorCase& operator_case, const ReplayedNode& node) {
  check_results(operator_case, node);
  CaseReplay replay{node.entry.op, node.entry.kernel, node.entry.shapes, {}};
  for (std::size_t k = 0; k < node.results.size(); ++k) {
    const Tensor& result = node.results[k];
    const Tensor &expected = operator_case.expected[k], &kept = operator_case.results[k];
    const double tolerance = operator_case.tolerances[k];
    replay.results.push_back(
        {operator_case.outputs[k], comparable_error(largest_difference(result, expected), tolerance), tolerance,
         comparable_error(largest_difference(kept, expected), tolerance), largest_difference(result, kept)});
  }
  return replay;
}

}  // namespace

void write_case(const std::filesystem::path& path, const OperatorCase& operator_case) {
  const OperatorCase& c = operator_case;
  const nlohmann::json description{{"version", kVersion},        {"node", c.node},       {"operator", c.op},
                                   {"attributes", c.attributes}, {"fused", c.fused},     {"device", c.device},
                                   {"kernel", c.kernel},         {"outputs", c.outputs}, {"tolerances", c.tolerances},
                                   {"network", c.network}};
  io::TensorMap tensors;
  for (const auto& [name, tensor] : c.inputs) tensors.emplace(prefixed("input", name), tensor);
  for (std::size_t k = 0; k < c.outputs.size(); ++k) {
    tensors.emplace(prefixed("expected", c.outputs[k]), c.expected[k]);
    tensors.emplace(prefixed("result", c.outputs[k]), c.results[k]);
  }
  io::write_safetensors(path, tensors,
                        {{kKey, description.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)}});
}

OperatorCase read_case(const std::filesystem::path& path) {
  io::Safetensors file = io::read_safetensors(path);
  const auto found = file.metadata.find(kKey);
  CONCORD_CHECK(found != file.metadata.end(), FormatError,
                "{} is not a case of an operator; `concord compare --save-case` writes one", path.string());
  OperatorCase c;
  const std::string subject = path.string() + ": the description of the case is damaged";
  read_json(found->second, subject, [&](const nlohmann::json& description) {
    const JsonFields fields(description, subject);
    const nlohmann::json& version = fields.at("version");
    CONCORD_CHECK(version == kVersion, FormatError, "{}: the case has version {}, this library reads version {}",
                  path.string(), version.dump(), kVersion);
    fields.read("node", c.node);
    fields.read("operator", c.op);
    fields.read("attributes", c.attributes);
    fields.read("fused", c.fused);
    fields.read("device", c.device);
    fields.read("kernel", c.kernel);
    fields.read("outputs", c.outputs);
    for (const auto& tolerance : fields.at("tolerances")) {
      c.tolerances.push_back(tolerance.is_null() ? INFINITY : tolerance.get<double>());  // JSON has no infinity
    }
    fields.read("network", c.network);
  });
  CONCORD_CHECK(c.tolerances.size() == c.outputs.size(), FormatError, "{}: {} results with {} tolerances",
                path.string(), c.outputs.size(), c.tolerances.size());
  for (const std::string& name : c.outputs) {
    c.expected.push_back(taken(file.tensors, prefixed("expected", name), path));
    c.results.push_back(taken(file.tensors, prefixed("result", name), path));
  }
  for (auto& [name, tensor] : file.tensors) {
    constexpr std::string_view kInput = "input/";
    if (name.starts_with(kInput)) c.inputs.emplace(name.substr(kInput.size()), std::move(tensor));
  }
  return c;
}

bool CaseReplay::diverges() const {
  return std::ranges::any_of(results, [](const Result& result) { return !(result.error <= result.tolerance); });
}

std::string CaseReplay::diverging(const OperatorCase& operator_case, const DeviceInfo& device) const {
  return diverges() ? fmt::format("{} diverges on {}", operator_case.node, device.id) : "";
}

std::string CaseReplay::json(const OperatorCase& operator_case, const DeviceInfo& device) const {
  nlohmann::json json{{"node", operator_case.node},
                      {"operator", operator_case.op},
                      {"fused", operator_case.fused},
                      {"network", operator_case.network},
                      {"shapes", shapes},
                      {"case", {{"device", operator_case.device}, {"kernel", operator_case.kernel}}},
                      {"device", device.id},
                      {"kernel", kernel},
                      {"diverges", diverges()},
                      {"values", nlohmann::json::array()}};
  for (const Result& result : results) {
    json["values"].push_back({{"value", result.name},
                              {"error", result.error},
                              {"tolerance", result.tolerance},
                              {"error_in_case", result.case_error},
                              {"difference_from_case", result.from_case}});
  }
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

CaseReplay replay(const OperatorCase& operator_case, const Graph& graph, Value loss, const DevicePtr& device,
                  Precision precision) {
  const auto variables = std::make_shared<Variables>(device, 1);
  Program program = compile(graph, {&loss, 1}, variables,
                            {.retain = operator_case.fused ? Retain::fused : Retain::all, .precision = precision});
  for (const auto& [name, tensor] : operator_case.inputs) {
    if (variables->contains(name)) variables->write(name, tensor);
  }
  std::optional<CaseReplay> result;
  Seen seen;
  const auto given = [&](const std::string& name) -> const Tensor* {
    const auto found = operator_case.inputs.find(name);
    CONCORD_CHECK(found != operator_case.inputs.end(), FormatError, "the case has no input '{}', which {} reads", name,
                  operator_case.op);
    return &found->second;
  };
  const auto take = [&](const ReplayedNode& node) { result = result_of(operator_case, node); };
  const auto is_it = [&](const TraceEntry& entry, const Operator* op) {
    if (entry.node != operator_case.node) return false;
    seen.add(entry);
    return entry.op == operator_case.op && op->attributes() == operator_case.attributes;
  };
  program.replay(given, take, is_it);
  CONCORD_CHECK(result.has_value(), ArgumentError,
                "on {} the network has no operator '{}' ({}) with the attributes of the case{}", device->info().id,
                operator_case.node, operator_case.op, seen.text.empty() ? "" : "; it has " + seen.text);
  return *std::move(result);
}

}  // namespace concord
