// The results of a comparison as JSON.
#include <cmath>
#include <nlohmann/json.hpp>

#include "concord/compare/compare.hpp"
#include "concord/core/version.hpp"
#include "concord/device/selection.hpp"

namespace concord {
namespace {

using Json = nlohmann::json;

/// Numbers that are not finite become null.
Json as_json(const Deviation& d) {
  return {{"node", d.node},
          {"operator", d.op},
          {"kernel", d.kernel},
          {"fused", d.form == Form::fused},
          {"value", d.value},
          {"shapes", d.shapes},
          {"pass", name_of(d.pass)},
          {"error", d.error},
          {"tolerance", d.tolerance},
          {"share_of_tolerance", d.share()},
          {"largest_relative", d.largest_relative},
          {"largest_ulps", d.largest_ulps},
          {"worst_element", d.worst_element},
          {"after_steps", d.step}};
}

Json as_json(const std::vector<WeightDistance>& distances) {
  Json list = Json::array();
  for (const WeightDistance& d : distances) list.push_back({{"step", d.step}, {"distance", d.distance}});
  return list;
}

Json as_json(const OperatorTime& time) {
  return {{"operator", time.op},      {"kernel", time.kernel},
          {"count", time.count},      {"microseconds", time.seconds * 1e6},
          {"flops", time.cost.flops}, {"bytes", time.cost.bytes},
          {"roofline", time.share()}};
}

std::string_view name_of(Mismatch mismatch) {
  switch (mismatch) {
    case Mismatch::none: return {};
    case Mismatch::first_run: return "the first run";
    case Mismatch::one_by_one: return "its kernels one by one";
  }
  return {};
}

Json as_json(const RerunCheck& run) {
  Json json{{"step", run.loss.step},
            {"loss_deviation", run.loss.deviation},
            {"perturbed_loss_deviation", std::isfinite(run.loss.deviation) ? Json(run.loss.explained) : Json()},
            {"checked_steps", run.checked_steps},
            {"mismatch", nullptr},
            {"non_finite", nullptr}};
  if (run.mismatch != Mismatch::none)
    json["mismatch"] = {{"step", run.mismatch_step}, {"other_than", name_of(run.mismatch)}};
  if (run.non_finite.found) {
    json["non_finite"] = {{"step", run.non_finite_step},
                          {"node", run.non_finite.node},
                          {"operator", run.non_finite.op},
                          {"shapes", run.non_finite.shapes},
                          {"text", run.non_finite.str()}};
  }
  return json;
}

Json as_json(const DeviceRun& run) {
  Json json{{"device", run.device.id},
            {"name", run.device.name},
            {"vendor", run.device.vendor},
            {"kind", name_of(run.device.kind)},
            {"platform", run.device.platform},
            {"driver", run.device.driver},
            {"compute_units", run.device.compute_units},
            {"device_memory_bytes", run.device.memory},
            {"losses", run.losses},
            {"first_step_ms", run.first_step_ms},
            {"step_ms", {{"median", run.median_ms}, {"min", run.min_ms}, {"max", run.max_ms}}},
            {"samples_per_second", run.samples_per_second},
            {"joules_a_step", nullptr},
            {"memory_bytes", run.memory_bytes},
            {"largest_loss_deviation", run.largest_loss_deviation},
            {"largest_loss_deviation_at_step", run.largest_at_step},
            {"checked_values", run.checked_values},
            {"first_deviation", nullptr},
            {"rerun_check", nullptr}};
  if (run.rerun_check) json["rerun_check"] = as_json(*run.rerun_check);
  if (run.first_deviation) json["first_deviation"] = as_json(*run.first_deviation);
  if (run.joules_a_step) {
    json["joules_a_step"] = *run.joules_a_step;
    json["energy_source"] = run.energy_source;
  }
  return json;
}

void add_operators(const DeviceRun& run, Json& json) {
  json["operators"] = Json::array();
  for (const Deviation& d : run.operators) json["operators"].push_back(as_json(d));
  json["no_float64_reference"] = run.unreferenced;
  json["times"] = Json::array();
  for (const OperatorTime& time : run.times) json["times"].push_back(as_json(time));
  json["ceilings"] = nullptr;
  if (run.speed) {
    json["ceilings"] = {{"bytes_per_second", run.speed->bytes_per_second},
                        {"flops_per_second", run.speed->flops_per_second},
                        {"launch_seconds", run.speed->launch_seconds}};
  }
}

Json checks_as_json(const Comparison& comparison, const std::vector<double>& seconds) {
  return {{"seconds", seconds}, {"in_steps_of_the_slowest_device", comparison.in_slowest_steps(seconds)}};
}

}  // namespace

std::string Comparison::json(JsonDetail detail) const {
  Json list = Json::array();
  for (const DeviceRun& run : runs) {
    Json entry = as_json(run);
    if (options.drift) entry["weight_distances"] = as_json(run.weight_distances);
    if (detail == JsonDetail::operators) add_operators(run, entry);
    list.push_back(std::move(entry));
  }
  Json document{{"network", network},
                {"steps", options.steps},
                {"batch", options.batch},
                {"seed", options.seed},
                {"precision", name_of(options.precision)},
                {"reference", options.reference == Reference::float64 ? "float64" : "device"},
                {"version", kVersion},
                {"agrees", agrees()},
                {"disagreement", disagreement()},
                {"checks",
                 {{"all_operators", checks_as_json(*this, check_cost.all_seconds)},
                  {"checked_steps", checks_as_json(*this, check_cost.step_seconds)},
                  {"compile_seconds", check_cost.compile_seconds}}},
                {"devices", std::move(list)}};
  if (options.drift) {
    document["perturbed"] = Json::array();
    for (const PerturbedRun& run : perturbed) {
      document["perturbed"].push_back({{"losses", run.losses},
                                       {"largest_loss_deviation", run.largest_loss_deviation},
                                       {"weight_distances", as_json(run.weight_distances)}});
    }
  }
  return document.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace concord
