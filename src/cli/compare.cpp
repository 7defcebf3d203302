// concord compare: the same training on several devices, side by side. Exit code 1 when an operator diverges.
#include "concord/compare/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <string_view>

#include "concord/core/platform.hpp"
#include "dataset.hpp"
#include "options.hpp"
#include "random_data.hpp"

namespace concord::cli {
namespace {

struct Options {
  TrainingOptions training;
  std::vector<std::string> devices;
  PrecisionOption precision;
  TraceOption trace;
  std::string data = "random", input;
  std::int64_t steps = 100;
  double seconds = 1;
  bool json = false;
};

constexpr std::int64_t kMostBatches = 16;  // of random data; they come again in another order
constexpr std::string_view kAll = "all";

Comparison compare_one(const Options& options, const models::Model& model, const Shape& sample,
                       const std::vector<DevicePtr>& devices) {
  const TrainingOptions& training = options.training;
  const Dataset dataset =
      options.data == "random"
          ? random_data(model, sample, std::min(options.steps, kMostBatches) * training.batch, training.seed)
          : open_dataset(options.data, "train", model, training.seed);
  const std::shared_ptr<nn::Module> network = network_for(model, dataset);
  const auto groups = training.make_groups(*network, models::batch_of(model, dataset.feature_spec().shape, 2));
  return compare(*network, std::string(model.name), models::loss_of(model.task), training.make_optimizer(), dataset,
                 devices,
                 {options.steps, training.batch, training.seed, groups, options.seconds, options.precision.get()});
}

void print_row(const Comparison& comparison) {
  double part = 0;
  std::int64_t checked = 0;
  std::string diverging = comparison.agrees() ? "none" : "not compared";
  for (const DeviceRun& run : comparison.runs) {
    part = std::max(part, run.largest_loss_deviation);
    checked += run.checked_values;
    if (!run.first_deviation) continue;
    const Deviation& d = *run.first_deviation;
    diverging = fmt::format("{} on {}: error {:.3g}, allowed {:.3g} ({}, kernel {}, {})", d.node, run.device.id,
                            d.error, d.tolerance, d.op, d.kernel, d.shapes);
  }
  std::cout << fmt::format("{:<22} {:>8} {:>13.2e}  {}\n", comparison.network, checked, part, diverging) << std::flush;
}

// Every network of the zoo at a small size. One that fails does not keep the others from being compared.
void run_all(const Options& options, const std::vector<DevicePtr>& devices) {
  if (options.data != "random" || !options.input.empty()) throw ArgumentError("'all' takes neither --data nor --input");
  std::string failed, json;
  if (!options.json)
    std::cout << fmt::format("{:<22} {:>8} {:>13}  {}\n", "network", "checked", "max loss dev", "diverging operator");
  for (const models::Model& model : models::all()) {
    try {
      const Comparison comparison = compare_one(options, model, model.least, devices);
      if (!comparison.agrees()) failed += fmt::format(" {}", model.name);
      if (options.json) json += (json.empty() ? "[\n" : ",\n") + comparison.json();
      if (!options.json) print_row(comparison);
    } catch (const Error& error) {
      failed += fmt::format(" {}", model.name);
      std::cerr << model.name << ": " << error.what() << '\n';
    }
  }
  if (options.json) std::cout << json << "]\n";
  if (!failed.empty()) throw Error("the devices do not agree, or could not be compared, on:" + failed);
}

void run(const Options& options) {
  if (options.training.batch < 1) throw ArgumentError("--batch must be at least 1");
  keep_freed_memory();  // every value of a network passes through the host, again and again
  const bool all = options.training.model == kAll;
  const models::Model* model = all ? nullptr : &models::find(options.training.model);
  if (!options.input.empty() && options.data != "random") throw ArgumentError("--input is for random data");
  std::vector<DevicePtr> devices;
  for (const std::string& selector : options.devices) devices.push_back(Device::open(selector));
  if (all) return run_all(options, devices);
  const Comparison comparison = compare_one(options, *model, sample_shape(options.input, *model), devices);
  std::cout << (options.json ? comparison.json() + "\n" : comparison.table());
  if (!comparison.agrees()) throw Error("the devices do not agree: see the diverging operator");
}

}  // namespace

void add_compare(CLI::App& app) {
  CLI::App* command = app.add_subcommand("compare", "Train on several devices at once and compare values and speed");
  const auto options = std::make_shared<Options>();
  options->training.add_model(*command, "; or all: each, at a small size");
  command->add_option("--devices", options->devices, "Comma-separated; the first is the reference")
      ->required()
      ->delimiter(',');
  command->add_option("--steps", options->steps, "Training steps")->capture_default_str()->check(positive());
  command->add_option("--data", options->data, kDataHelp)->capture_default_str();
  command->add_option("--input", options->input, "One random sample, such as 3x64x64 [as published]");
  command->add_option("--seconds", options->seconds, "Time each device's step at least this long")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  options->precision.add(*command);
  options->training.add_training(*command);
  options->trace.add(*command);
  command->add_flag("--json", options->json, "Print JSON");
  command->callback([options] { options->trace.around([&] { run(*options); }); });
}

}  // namespace concord::cli
