// Requests as JSON.
#include "concord/compare/request.hpp"

#include <fmt/format.h>

#include "concord/core/error.hpp"
#include "concord/core/json.hpp"
#include "concord/core/platform.hpp"
#include "concord/core/reporting_program.hpp"
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
      CompareRequest request;
      json.at("name").get_to(request.name);
      json.at("devices").get_to(request.devices);
      json.at("steps").get_to(request.options.steps);
      json.at("seconds").get_to(request.options.seconds);
      request.options.reference = json.at("float64").get<bool>() ? Reference::float64 : Reference::device;
      json.at("check_every").get_to(request.options.check_every);
      json.at("drift").get_to(request.options.drift);
      json.at("speed").get_to(request.options.speed);
      json.at("prints_json").get_to(request.outputs.prints_json);
      json.at("html").get_to(request.outputs.html_file);
      json.at("json").get_to(request.outputs.json_file);
      json.at("case").get_to(request.outputs.case_file);
      json.at("case_node").get_to(request.options.case_node);
      json.at("network").get_to(request.network);
      json.at("replayed_case").get_to(request.replayed_case);
      json.at("trace").get_to(request.trace_file);
      json.at("channel").get_to(request.channel);
      return std::optional(std::move(request));
    });
  } catch (const FormatError&) {
    throw ArgumentError(fmt::format("{} is for `concord compare PROGRAM` to set; it is \"{}\"", kVariable, *text));
  }
}

void CompareRequest::answer(const CompareReply& reply) const {
  const nlohmann::json json{{"text", reply.text}, {"error", reply.error}, {"is_wrong_use", reply.is_wrong_use}};
  report_to(channel, json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

std::optional<CompareReply> CompareReply::read(const std::string& report) {
  try {
    return read_json(report, "the reply", [](const nlohmann::json& json) {
      return CompareReply{json.at("text"), json.at("error"), json.at("is_wrong_use")};
    });
  } catch (const FormatError&) {
    return std::nullopt;
  }
}

}  // namespace concord
