// concord bench: how fast a network trains and infers on one device, on random data that lies on the device.
#include <fmt/format.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "concord/cli/bench_network.hpp"
#include "concord/cli/operator_table.hpp"
#include "concord/compile/measure.hpp"
#include "concord/core/check.hpp"
#include "concord/core/human_bytes.hpp"
#include "concord/core/platform.hpp"
#include "concord/energy/meter.hpp"

namespace concord::cli {
namespace {

struct BenchArguments {
  BenchOptions network;
  double seconds = 1;
  bool json = false;
  bool kernels = false;  // --trace without a file
  TraceOption trace;
  bool first_step = false;
};

struct Phase {
  RunTimes times;
  Cost cost;
  Recomputed recomputed;
  std::size_t memory = 0, launches = 0;
  std::vector<TraceEntry> trace;
  std::optional<double> joules = {};  // a run
};

nlohmann::json as_json(const Phase& phase, std::int64_t batch) {
  const double seconds = phase.times.median_ms / 1e3;
  nlohmann::json json{{"median_ms", phase.times.median_ms},
                      {"min_ms", phase.times.min_ms},
                      {"max_ms", phase.times.max_ms},
                      {"samples", phase.times.samples},
                      {"runs_a_sample", phase.times.runs_a_sample},
                      {"samples_per_second", static_cast<double>(batch) / seconds},
                      {"flops", phase.cost.flops},
                      {"bytes", phase.cost.bytes},
                      {"flops_per_second", phase.cost.flops / seconds},
                      {"bytes_per_second", phase.cost.bytes / seconds},
                      {"launches", phase.launches},
                      {"recomputed_launches", phase.recomputed.launches},
                      {"recomputed_flops", phase.recomputed.cost.flops},
                      {"program_bytes", phase.memory},
                      {"joules", nullptr}};
  if (phase.joules) json["joules"] = *phase.joules;
  for (const TraceEntry& entry : phase.trace) {
    json["trace"].push_back({{"node", entry.node},
                             {"operator", entry.op},
                             {"kernel", entry.kernel},
                             {"shapes", entry.shapes},
                             {"microseconds", entry.seconds * 1e6},
                             {"flops", entry.cost.flops},
                             {"bytes", entry.cost.bytes}});
  }
  return json;
}

std::vector<std::string> row(const char* name, const Phase& phase, std::int64_t batch) {
  const double seconds = phase.times.median_ms / 1e3;
  return {name,
          fmt::format("{:.3f}", phase.times.median_ms),
          fmt::format("{:.3f}", phase.times.min_ms),
          fmt::format("{:.3f}", phase.times.max_ms),
          fmt::format("{:.0f}", static_cast<double>(batch) / seconds),
          fmt::format("{:.1f}", phase.cost.flops / seconds / 1e9),
          fmt::format("{:.1f}", phase.cost.bytes / seconds / 1e9),
          phase.joules ? fmt::format("{:.3g}", *phase.joules) : "-",
          fmt::format("{}", phase.launches),
          human_bytes(phase.memory)};
}

Phase measured(const BenchArguments& options, Program program) {
  Phase phase{measure(program, {.seconds = options.seconds}),
              program.cost(),
              program.recomputed(),
              program.memory(),
              program.launches(),
              {}};
  if (const auto meter = energy_meter(program.device().info())) phase.joules = joules_a_run(program, *meter);
  if (options.kernels) phase.trace = program.run_traced();
  return phase;
}

void print_trace(const char* name, const Phase& phase) {
  const std::vector<OperatorTime> times = operator_times(phase.trace, Rows::launch);
  std::cout << fmt::format("\n{}:\n{}", name, operator_table(times, Rows::launch, nullptr));
}

void run_bench(const BenchArguments& options) {
  const std::int64_t batch = options.network.training.batch;
  const std::string& precision = options.network.precision.name;
  BenchNetwork bench(options.network);
  options.network.precision.warn_of(bench.device()->info());
  Program step = bench.training_step();
  step.run();
  bench.device()->finish();
  const double first_step = process_age_seconds();
  if (options.first_step && options.json) {
    std::cout << json_text({{"net", bench.model().name},
                            {"batch", batch},
                            {"precision", precision},
                            {"device", bench.device()->info().id},
                            {"device_name", bench.device()->info().name},
                            {"start_to_first_step_s", first_step},
                            {"peak_resident_bytes", peak_resident_bytes()}});
    return;
  }
  if (options.first_step) {
    std::cout << fmt::format(
        "{} on {}: first training step done {:.2f} s after the start of the process, {} resident\n", bench.model().name,
        bench.device()->info().name, first_step, human_bytes(peak_resident_bytes()));
    return;
  }
  const Phase train = measured(options, std::move(step));
  const Phase infer = measured(options, bench.inference());
  const DeviceInfo& info = bench.device()->info();
  if (options.json) {
    const auto sample = bench.sample().dims();
    const nlohmann::json document{{"version", kVersion},
                                  {"net", bench.model().name},
                                  {"task", models::name_of(bench.model().task)},
                                  {"input", std::vector<std::int64_t>(sample.begin(), sample.end())},
                                  {"dtype", name_of(bench.model().dtype)},
                                  {"classes", bench.model().classes},
                                  {"parameters", bench.parameters()},
                                  {"batch", batch},
                                  {"precision", precision},
                                  {"memory_budget", options.network.memory_budget.bytes()},
                                  {"device", info.id},
                                  {"device_name", info.name},
                                  {"driver", info.driver},
                                  {"start_to_first_step_s", first_step},
                                  {"peak_device_bytes", bench.device()->peak_allocated()},
                                  {"peak_resident_bytes", peak_resident_bytes()},
                                  {"train", as_json(train, batch)},
                                  {"infer", as_json(infer, batch)}};
    std::cout << json_text(document);
    return;
  }
  std::cout << fmt::format("{} ({} parameters), batch {}, {} on {}; first step {:.2f} s after the start\n",
                           bench.model().name, bench.parameters(), batch, precision, info.name, first_step);
  std::cout << table({{"", "median ms", "min", "max", "samples/s", "GFLOP/s", "GB/s", "joules", "launches", "memory"},
                      row("training step", train, batch),
                      row("inference", infer, batch)});
  if (options.network.memory_budget.bytes() > 0) {
    std::cout << fmt::format(
        "memory budget of the training step {}: {} of its launches and {:.1f} % of its FLOPs recompute values that are "
        "not kept\n",
        human_bytes(options.network.memory_budget.bytes()), train.recomputed.launches,
        100 * train.recomputed.cost.flops / train.cost.flops);
  }
  if (options.kernels) {
    print_trace("training step", train);
    print_trace("inference", infer);
  }
}

}  // namespace

void add_bench(CLI::App& app) {
  CLI::App* command = app.add_subcommand("bench", "Measure training step and inference of a network on a device");
  const auto options = std::make_shared<BenchArguments>();
  options->network.add(*command);
  CLI::Option* const seconds = command->add_option("--seconds", options->seconds, "Seconds to measure each of them")
                                   ->capture_default_str()
                                   ->check(positive());
  command
      ->add_option("--trace", options->trace.file,
                   "Without a file: measure every kernel (see also profile); with a file: write a timeline there, for "
                   "https://ui.perfetto.dev")
      ->type_name("[FILE]")
      ->expected(0, 1);
  command
      ->add_flag("--first-step", options->first_step,
                 "Only report the time of the first step, from the start of the process")
      ->excludes(seconds);
  command->add_flag("--json", options->json, "Print JSON");
  command->callback([options, command] {
    options->kernels = command->count("--trace") > 0 && options->trace.file.empty();
    CONCORD_CHECK(!options->kernels || !options->first_step, ArgumentError,
                  "--trace without a file measures every kernel, which --first-step does not");
    options->trace.around(InputFiles().add(options->network.training.model), [&] { run_bench(*options); });
  });
}

}  // namespace concord::cli
