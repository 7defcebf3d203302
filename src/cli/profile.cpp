// concord profile: where the time of one step goes, by operator and kernel, beside what the device can do.
#include <fmt/format.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "concord/cli/bench_network.hpp"
#include "concord/cli/operator_table.hpp"
#include "concord/compile/measure.hpp"

namespace concord::cli {
namespace {

struct ProfileArguments {
  BenchOptions network;
  bool inference = false;
  bool detail = false;
  TraceOption trace;
  bool json = false;
};

constexpr int kRuns = 5;

nlohmann::json as_json(const OperatorTime& time, double step_kernels, Rows rows) {
  nlohmann::json json{{"operator", time.op},
                      {"kernel", time.kernel},
                      {"count", time.count},
                      {"microseconds", time.seconds * 1e6},
                      {"share", time.seconds / step_kernels},
                      {"flops", time.cost.flops},
                      {"bytes", time.cost.bytes},
                      {"flops_per_second", time.cost.flops / time.seconds},
                      {"bytes_per_second", time.cost.bytes / time.seconds},
                      {"roofline", time.share()}};
  if (rows == Rows::launch) {
    json["shapes"] = time.shapes;
    json["node"] = time.node;
  }
  return json;
}

void run_profile(const ProfileArguments& options) {
  const std::int64_t batch = options.network.training.batch;
  if (options.inference && options.network.memory_budget.bytes() > 0) {
    throw ArgumentError("--memory-budget applies to a training step; it cannot be used with --inference");
  }
  BenchNetwork network(options.network);
  options.network.precision.warn_of(network.device()->info());
  Program program = options.inference ? network.inference() : network.training_step();
  const RunTimes times = measure(program, {.seconds = 0.5, .least = 5});
  const std::vector<TraceEntry> trace = median_trace(program, kRuns);
  const DeviceSpeed speed = measure_speed(network.device(), options.network.precision.get());
  const Rows rows = options.detail ? Rows::launch : Rows::kind;
  const std::vector<OperatorTime> operators = operator_times(trace, rows, &speed);
  const OperatorTime total = total_of(operators);
  const char* const what = options.inference ? "inference" : "training step";
  const DeviceInfo& info = network.device()->info();
  if (options.json) {
    nlohmann::json json{
        {"version", kVersion},
        {"net", network.model().name},
        {"batch", batch},
        {"precision", options.network.precision.name},
        {"device", info.id},
        {"device_name", info.name},
        {"driver", info.driver},
        {"what", what},
        {"median_ms", times.median_ms},
        {"ceilings", {{"bytes_per_second", speed.bytes_per_second}, {"flops_per_second", speed.flops_per_second}}},
        {"operators", nlohmann::json::array()}};
    for (const OperatorTime& time : operators) json["operators"].push_back(as_json(time, total.seconds, rows));
    json["total"] = as_json(total, total.seconds, Rows::kind);
    std::cout << json_text(json);
    return;
  }
  std::cout << fmt::format("{} of {}, batch {}, {} on {}: {:.3f} ms, {:.3f} ms in kernels one by one\n", what,
                           network.model().name, batch, options.network.precision.name, info.name, times.median_ms,
                           total.seconds * 1e3)
            << fmt::format("the device's roofline: {:.1f} GFLOP/s (a matrix multiplication of {}x{}), {:.1f} GB/s\n\n",
                           speed.flops_per_second / 1e9, speed.product_size, speed.product_size,
                           speed.bytes_per_second / 1e9)
            << operator_table(operators, rows, &speed);
}

}  // namespace

void add_profile(CLI::App& app) {
  CLI::App* command = app.add_subcommand("profile", "Show the time of a network's step by operator");
  const auto options = std::make_shared<ProfileArguments>();
  options->network.add(*command);
  command->add_flag("--inference", options->inference, "Profile inference instead of a training step");
  command->add_flag("--detail", options->detail, "Print a row for each launch, with shapes and node");
  command->add_flag("--json", options->json, "Print JSON");
  options->trace.add(*command);
  command->callback([options] {
    options->trace.around(InputFiles().add(options->network.training.model), [&] { run_profile(*options); });
  });
}

}  // namespace concord::cli
