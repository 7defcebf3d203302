// concord compare: the same training on several devices, side by side. Exit code 1 when an operator diverges.
#include "concord/compare/compare.hpp"

#include <fmt/format.h>

#include <iostream>

#include "dataset.hpp"
#include "options.hpp"

namespace concord::cli {
namespace {

struct Options {
  TrainingOptions training;
  std::vector<std::string> devices;
  std::string data = "random";
  std::int64_t steps = 100;
  bool json = false;
};

void run(const Options& options) {
  if (options.training.batch < 1) throw ArgumentError("--batch must be at least 1");
  const models::Model& model = models::find(options.training.model);
  const std::shared_ptr<nn::Module> network = models::make(model.name);
  std::vector<DevicePtr> devices;
  for (const std::string& selector : options.devices) devices.push_back(Device::open(selector));
  const Dataset dataset = open_dataset(options.data, "train", model.input, model.classes, options.training.seed);
  const Comparison comparison =
      compare(*network, std::string(model.name), loss::cross_entropy, options.training.make_optimizer(), dataset,
              devices, {options.steps, options.training.batch, options.training.seed, options.training.make_groups()});
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
  command->add_option("--steps", options->steps, "Training steps")->capture_default_str()->check(CLI::PositiveNumber);
  command->add_option("--data", options->data, kDataHelp)->capture_default_str();
  options->training.add_training(*command);
  command->add_flag("--json", options->json, "Print JSON");
  command->callback([options] { run(*options); });
}

}  // namespace concord::cli
