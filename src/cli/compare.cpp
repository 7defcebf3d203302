// concord compare: the same training on several devices, side by side. Exit code 1 when an operator diverges.
#include "concord/compare/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>

#include "dataset.hpp"
#include "options.hpp"
#include "random_data.hpp"

namespace concord::cli {
namespace {

struct Options {
  TrainingOptions training;
  std::vector<std::string> devices;
  std::string data = "random", input;
  std::int64_t steps = 100;
  bool json = false;
};

constexpr std::int64_t kMostBatches = 16;  // of random data; they come again in another order

void run(const Options& options) {
  if (options.training.batch < 1) throw ArgumentError("--batch must be at least 1");
  const models::Model& model = models::find(options.training.model);
  const std::int64_t batch = options.training.batch;
  const bool random = options.data == "random";
  if (!options.input.empty() && !random) throw ArgumentError("--input is for random data");
  const Dataset dataset = random ? random_data(model, sample_shape(options.input, model),
                                               std::min(options.steps, kMostBatches) * batch, options.training.seed)
                                 : open_dataset(options.data, "train", model, options.training.seed);
  const std::shared_ptr<nn::Module> network = network_for(model, dataset);
  std::vector<DevicePtr> devices;
  for (const std::string& selector : options.devices) devices.push_back(Device::open(selector));
  const auto groups = options.training.make_groups(*network, models::batch_of(model, dataset.feature_spec().shape, 2));
  const Comparison comparison =
      compare(*network, std::string(model.name), models::loss_of(model.task), options.training.make_optimizer(),
              dataset, devices, {options.steps, batch, options.training.seed, groups});
  std::cout << (options.json ? comparison.json() + "\n" : comparison.table());
  if (!comparison.agrees()) throw Error("the devices do not agree: see the diverging operator");
}

}  // namespace

void add_compare(CLI::App& app) {
  CLI::App* command = app.add_subcommand("compare", "Train on several devices at once and compare values and speed");
  const auto options = std::make_shared<Options>();
  options->training.add_model(*command);
  command->add_option("--devices", options->devices, "Comma-separated; the first is the reference")
      ->required()
      ->delimiter(',');
  command->add_option("--steps", options->steps, "Training steps")->capture_default_str()->check(positive());
  command->add_option("--data", options->data, kDataHelp)->capture_default_str();
  command->add_option("--input", options->input, "One random sample, such as 3x64x64 [as published]");
  options->training.add_training(*command);
  command->add_flag("--json", options->json, "Print JSON");
  command->callback([options] { run(*options); });
}

}  // namespace concord::cli
