// The report of `concord plan`.
#include "concord/cli/plan_report.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "concord/cli/command.hpp"
#include "concord/cli/counted.hpp"
#include "concord/core/human_bytes.hpp"

namespace concord::cli {
namespace {

constexpr double kMilli = 1e3, kMicro = 1e6;

const char* name_of(plan::Algorithm algorithm) { return algorithm == plan::Algorithm::direct ? "direct" : "ring"; }

std::string text_of(const char* where, const KnownLink& known) {
  const plan::Link& link = known.link;
  std::string text = fmt::format(
      "link {}: latency {:.4g} us, {}", where, link.latency * kMicro,
      link.per_byte > 0 ? fmt::format("bandwidth {:.4g} GB/s", 1e-9 / link.per_byte) : "no limit of bandwidth");
  if (link.overhead > 0) text += fmt::format(", overhead {:.4g} us", link.overhead * kMicro);
  if (link.gap > 0) text += fmt::format(", gap {:.4g} us", link.gap * kMicro);
  if (known.sum_per_byte > 0) text += fmt::format(", sums {:.4g} GB/s", 1e-9 / known.sum_per_byte);
  if (known.error) text += fmt::format("; fitted, within {:.1f} %", 100 * *known.error);
  return text + "\n";
}

nlohmann::ordered_json json_of(const KnownLink& known) {
  nlohmann::ordered_json json{
      {"latency_s", known.link.latency},   {"overhead_s", known.link.overhead},    {"gap_s", known.link.gap},
      {"s_per_byte", known.link.per_byte}, {"sum_s_per_byte", known.sum_per_byte}, {"fit_error", nullptr}};
  if (known.error) json["fit_error"] = *known.error;
  return json;
}

nlohmann::ordered_json json_of(const plan::Prediction& prediction) {
  return {
      {"ranks", prediction.ranks},       {"step_s", prediction.step},         {"efficiency", prediction.efficiency()},
      {"buckets", prediction.buckets},   {"exchange_s", prediction.exchange}, {"exposed_s", prediction.exposed},
      {"waiting_s", prediction.waiting}, {"limit", prediction.limit}};
}

std::vector<std::string> row(const plan::Prediction& prediction) {
  return {fmt::format("{}", prediction.ranks),
          fmt::format("{:.3f}", kMilli * prediction.step),
          fmt::format("{:.3f}", prediction.efficiency()),
          fmt::format("{:.3f}", kMilli * prediction.exchange),
          fmt::format("{:.3f}", kMilli * prediction.exposed),
          fmt::format("{:.3f}", kMilli * prediction.waiting),
          prediction.limit};
}

}  // namespace

std::string plan_table(const PlanReport& report) {
  const plan::RecordedStep& step = report.step;
  std::string text = fmt::format(
      "{}: a step of {:.3f} ms on {} (forward {:.3f}, backward {:.3f}, update {:.3f}, idle {:.3f}; median of {}), "
      "gradients of {}\n",
      report.network, kMilli * step.seconds(), step.device, kMilli * step.forward, kMilli * step.backward,
      kMilli * step.update, kMilli * step.idle, counted(step.steps, "step"), human_bytes(step.bytes()));
  if (!report.setting.is_overlapped) text += "exchanges begin after the backward pass\n";
  if (report.between) text += text_of("between machines", *report.between);
  if (report.inside) text += text_of("inside a machine", *report.inside);
  const int per_machine = report.setting.cluster.per_machine;
  text += fmt::format("{} a machine, exchange {}, buckets {}", counted(per_machine, "rank"),
                      name_of(report.setting.algorithm),
                      report.setting.bucket > 0 ? "of " + human_bytes(report.setting.bucket) : "as in a training");
  if (report.setting.accumulate > 1) text += fmt::format(", {} batches an update", report.setting.accumulate);
  if (report.setting.slowdown > 0) {
    text += fmt::format(", computation beside exchanges {:.3g} times as long", 1 + report.setting.slowdown);
  }
  text += "\n\n";
  std::vector<std::vector<std::string>> rows{
      {"ranks", "step ms", "efficiency", "exchange ms", "exposed ms", "slowest rank ms", "limit"}};
  for (const plan::Prediction& prediction : report.predictions) rows.push_back(row(prediction));
  text += table(rows);
  if (report.best.ranks > 1) {
    text += fmt::format("\nbest buckets for {} ranks: {}, a step of {:.3f} ms, efficiency {:.3f}\n", report.best.ranks,
                        human_bytes(report.best_bucket), kMilli * report.best.step, report.best.efficiency());
  }
  return text;
}

nlohmann::ordered_json plan_json(const PlanReport& report) {
  const plan::RecordedStep& step = report.step;
  nlohmann::ordered_json json{{"network", report.network},
                              {"device", step.device},
                              {"recorded_steps", step.steps},
                              {"recorded_ranks", step.ranks},
                              {"gradient_bytes", step.bytes()},
                              {"step_s", step.seconds()},
                              {"forward_s", step.forward},
                              {"backward_s", step.backward},
                              {"update_s", step.update},
                              {"idle_s", step.idle},
                              {"is_overlapped", report.setting.is_overlapped},
                              {"ranks_per_machine", report.setting.cluster.per_machine},
                              {"algorithm", name_of(report.setting.algorithm)},
                              {"bucket_bytes", report.setting.bucket},
                              {"accumulate", report.setting.accumulate},
                              {"slowdown", report.setting.slowdown},
                              {"link_between", nullptr},
                              {"link_inside", nullptr}};
  if (report.between) json["link_between"] = json_of(*report.between);
  if (report.inside) json["link_inside"] = json_of(*report.inside);
  for (const plan::Gradient& gradient : step.gradients) {
    json["gradients"].push_back(
        {{"parameter", gradient.parameter}, {"bytes", gradient.bytes}, {"ready_s", gradient.ready}});
  }
  for (const plan::Prediction& prediction : report.predictions) json["predictions"].push_back(json_of(prediction));
  json["best"] = json_of(report.best);
  json["best"]["bucket_bytes"] = report.best_bucket;
  return json;
}

}  // namespace concord::cli
