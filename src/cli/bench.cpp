// concord bench: how fast a network trains and infers on one device, on random data that lies on the device.
#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "concord/compile/measure.hpp"
#include "concord/compile/memory_need.hpp"
#include "concord/core/platform.hpp"
#include "options.hpp"
#include "random_data.hpp"

namespace concord::cli {
namespace {

struct Options {
  TrainingOptions training;
  std::string input;
  DeviceOption device;
  PrecisionOption precision;
  double seconds = 1;
  bool json = false;
  bool trace = false;
  bool first_step = false;
};

struct Phase {
  RunTimes times;
  Cost cost;
  std::size_t memory = 0, launches = 0;
  std::vector<TraceEntry> trace;
};

// A network with a batch of random samples in place.
class Bench {
 public:
  explicit Bench(const Options& options)
      : options_(options),
        model_(models::find(options.training.model)),
        sample_(sample_shape(options.input, model_)),
        network_(models::make(model_.name, {.input = sample_})),
        device_(options.device.open()),
        variables_(std::make_shared<Variables>(device_, options.training.seed)),
        batch_(models::batch_of(model_, sample_, options.training.batch)),
        groups_(options.training.make_groups(*network_, models::batch_of(model_, sample_, 2))) {}

  [[nodiscard]] const models::Model& model() const { return model_; }
  [[nodiscard]] const Shape& sample() const { return sample_; }
  [[nodiscard]] Device& device() const { return *device_; }

  // One training step, compiled and fed. The data is made once the program is known to fit.
  [[nodiscard]] Program training_step() {
    Program program = compiled_step();
    data_ = random_data(model_, sample_, options_.training.batch, options_.training.seed);
    program.write("labels", data_.labels);
    program.write("features", data_.features);
    return program;
  }

  [[nodiscard]] Program inference() {
    Graph graph;
    graph.set_training(false);
    const Value features = graph.input("features", batch_);
    Program program =
        compile(graph, std::vector{(*network_)(features)}, variables_, {.precision = options_.precision.get()});
    program.write("features", data_.features);
    return program;
  }

  [[nodiscard]] Phase measured(Program program) const {
    Phase phase{
        measure(program, {.seconds = options_.seconds}), program.cost(), program.memory(), program.launches(), {}};
    if (options_.trace) phase.trace = program.run_traced();
    return phase;
  }

 private:
  [[nodiscard]] Value traced_step(Graph& graph, std::int64_t batch) {
    const Value output = (*network_)(graph.input("features", models::batch_of(model_, sample_, batch)));
    const Value labels = graph.input("labels", models::target_of(model_.task, output.shape()));
    const Value loss = models::loss_of(model_.task)(output, labels);
    optim::minimize(loss, options_.training.make_optimizer(),
                    {.groups = groups_, .loss_scale = optim::loss_scale_for(options_.precision.get())});
    return loss;
  }

  [[nodiscard]] Program compiled_step() {
    try {
      Graph graph;
      const Value loss = traced_step(graph, options_.training.batch);
      return compile(graph, {&loss, 1}, variables_, {.precision = options_.precision.get()});
    } catch (const OutOfMemory& error) {
      const auto need = [&](std::int64_t batch, MemoryDetail detail) {
        Graph graph;
        const Value loss = traced_step(graph, batch);
        return memory_need(graph, {&loss, 1}, *variables_, detail).total();
      };
      throw OutOfMemory(fmt::format("{}. {}", error.what(), advice_on_batch(options_.training.batch, *device_, need)));
    }
  }

  const Options& options_;
  const models::Model& model_;
  Shape sample_;
  std::shared_ptr<nn::Module> network_;
  DevicePtr device_;
  VariablesPtr variables_;
  TensorSpec batch_;
  std::vector<optim::Group> groups_;
  Dataset data_;
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
                      {"program_bytes", phase.memory}};
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
          fmt::format("{}", phase.launches),
          human_bytes(phase.memory)};
}

void print_trace(const char* name, const Phase& phase) {
  std::vector<TraceEntry> entries = phase.trace;
  std::stable_sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
  double total = 0;
  for (const TraceEntry& entry : entries) total += entry.seconds;
  std::vector<std::vector<std::string>> rows{
      {"us", "share", "GFLOP/s", "GB/s", "operator", "kernel", "shapes", "node"}};
  for (const TraceEntry& entry : entries) {
    rows.push_back({fmt::format("{:.1f}", entry.seconds * 1e6), fmt::format("{:.1f}%", 100 * entry.seconds / total),
                    fmt::format("{:.1f}", entry.cost.flops / entry.seconds / 1e9),
                    fmt::format("{:.1f}", entry.cost.bytes / entry.seconds / 1e9), entry.op, entry.kernel, entry.shapes,
                    entry.node});
  }
  std::cout << fmt::format("\n{}: {:.1f} us in kernels\n", name, total * 1e6) << table(rows);
}

void run(const Options& options) {
  const std::int64_t batch = options.training.batch;
  if (batch < 1) throw ArgumentError("--batch must be at least 1");
  Bench bench(options);
  Program step = bench.training_step();
  step.run();
  bench.device().finish();
  const double first_step = process_age_seconds();
  if (options.first_step) {
    std::cout << fmt::format(
        "{} on {}: first training step done {:.2f} s after the start of the process, {} resident\n", bench.model().name,
        bench.device().info().name, first_step, human_bytes(peak_resident_bytes()));
    return;
  }
  const Phase train = bench.measured(std::move(step));
  const Phase infer = bench.measured(bench.inference());
  const DeviceInfo& info = bench.device().info();
  if (options.json) {
    const auto sample = bench.sample().dims();
    const nlohmann::json document{{"version", kVersion},
                                  {"net", bench.model().name},
                                  {"task", models::name_of(bench.model().task)},
                                  {"input", std::vector<std::int64_t>(sample.begin(), sample.end())},
                                  {"dtype", name_of(bench.model().dtype)},
                                  {"classes", bench.model().classes},
                                  {"parameters", bench.model().parameters},
                                  {"batch", batch},
                                  {"precision", options.precision.name},
                                  {"device", info.id},
                                  {"device_name", info.name},
                                  {"driver", info.driver},
                                  {"start_to_first_step_s", first_step},
                                  {"peak_device_bytes", bench.device().peak_allocated()},
                                  {"peak_resident_bytes", peak_resident_bytes()},
                                  {"train", as_json(train, batch)},
                                  {"infer", as_json(infer, batch)}};
    std::cout << document.dump(2) << "\n";
    return;
  }
  std::cout << fmt::format("{} ({} parameters), batch {}, {} on {}; first step {:.2f} s after the start\n",
                           bench.model().name, bench.model().parameters, batch, options.precision.name, info.name,
                           first_step);
  std::cout << table({{"", "median ms", "min", "max", "samples/s", "GFLOP/s", "GB/s", "launches", "memory"},
                      row("training step", train, batch),
                      row("inference", infer, batch)});
  if (options.trace) {
    print_trace("training step", train);
    print_trace("inference", infer);
  }
}

}  // namespace

void add_bench(CLI::App& app) {
  CLI::App* command = app.add_subcommand("bench", "Measure training step and inference of a network on a device");
  const auto options = std::make_shared<Options>();
  options->training.add_model(*command);
  options->device.add(*command);
  command->add_option("--input", options->input, "One sample, such as 3x64x64 [as published]");
  options->training.add_training(*command);
  options->precision.add(*command);
  command->add_option("--seconds", options->seconds, "Time to measure each for")
      ->capture_default_str()
      ->check(positive());
  command->add_flag("--trace", options->trace, "Time every kernel");
  command->add_flag("--first-step", options->first_step, "Only say how long the first step took from process start");
  command->add_flag("--json", options->json, "Print JSON");
  command->callback([options] { run(*options); });
}

}  // namespace concord::cli
