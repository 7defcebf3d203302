// Requests as JSON.
#include "concord/compare/report/request.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <iostream>

#include "concord/core/child_process.hpp"
#include "concord/core/error.hpp"
#include "concord/core/json.hpp"
#include "concord/core/platform.hpp"
#include "concord/core/text.hpp"

namespace concord {

std::string CompareRequest::text() const {
  return nlohmann::json{{"name", name},
                        {"devices", devices},
                        {"steps", options.steps},
                        {"seconds", options.seconds},
                        {"float64", options.reference == Reference::float64},
                        {"check_every", options.check_every},
                        {"drift", options.drift},
                        {"speed", options.speed},
                        {"prints_json", outputs.prints_json},
                        {"html", outputs.html_file},
                        {"json", outputs.json_file},
                        {"case", outputs.case_file},
                        {"case_node", options.case_node},
                        {"network", network},
                        {"replayed_case", replayed_case},
                        {"trace", trace_file},
                        {"channel", channel}}
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::optional<CompareRequest> CompareRequest::of_environment() {
  const auto text = environment(kVariable);
  if (!text) return std::nullopt;
  try {
    return read_json(*text, kVariable, [](const nlohmann::json& json) {
      const JsonFields fields(json, kVariable);
      CompareRequest request;
      fields.read("name", request.name);
      fields.read("devices", request.devices);
      fields.read("steps", request.options.steps);
      fields.read("seconds", request.options.seconds);
      request.options.reference = fields.get<bool>("float64") ? Reference::float64 : Reference::device;
      fields.read("check_every", request.options.check_every);
      fields.read("drift", request.options.drift);
      fields.read("speed", request.options.speed);
      fields.read("prints_json", request.outputs.prints_json);
      fields.read("html", request.outputs.html_file);
      fields.read("json", request.outputs.json_file);
      fields.read("case", request.outputs.case_file);
      fields.read("case_node", request.options.case_node);
      fields.read("network", request.network);
      fields.read("replayed_case", request.replayed_case);
      fields.read("trace", request.trace_file);
      fields.read("channel", request.channel);
      return std::optional(std::move(request));
    });
  } catch (const FormatError&) {
    throw ArgumentError(fmt::format("{} is \"{}\"; only `concord compare PROGRAM` may set it", kVariable, *text));
  }
}

void CompareRequest::answer(const CompareReply& reply) const {
  const nlohmann::json json{{"text", reply.text}, {"error", reply.error}, {"is_wrong_use", reply.is_wrong_use}};
  std::cout.flush();
  std::fflush(nullptr);
  const ParentChannel command(channel);
  if (command.send(json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace))) command.hang_up();
}

std::optional<CompareReply> CompareReply::read(const std::string& report) {
  try {
    return read_json(report, "the reply", [](const nlohmann::json& json) {
      const JsonFields fields(json, "the reply");
      return CompareReply{fields.get<std::string>("text"), fields.get<std::string>("error"),
                          fields.get<bool>("is_wrong_use")};
    });
  } catch (const FormatError&) {
    return std::nullopt;
  }
}

}  // namespace concord
