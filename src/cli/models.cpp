// concord models: the networks there are, and what they cost.
#include <fmt/format.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "concord/models/summary.hpp"
#include "step_memory.hpp"

namespace concord::cli {
namespace {

struct Options {
  StepMemoryOptions step;
  bool memory = false;
  bool json = false;
};

void run(const Options& options) {
  const DevicePtr device = options.memory ? options.step.open() : nullptr;
  std::vector<std::vector<std::string>> rows{{"network", "parameters", "GFLOP a sample", "input", "task", ""}};
  if (options.memory) rows[0].insert(rows[0].begin() + 3, fmt::format("step of {}", options.step.training.batch));
  nlohmann::json list = nlohmann::json::array();
  for (const models::Model& model : models::all()) {
    const auto network = models::make(model.name);
    const models::Summary summary = models::summarize(*network, models::batch_of(model, 2));
    const double flops = summary.flops / 2;
    std::vector<std::string> row{
        std::string(model.name),          fmt::format("{}", model.parameters),      fmt::format("{:.3f}", flops / 1e9),
        models::batch_of(model, 1).str(), std::string(models::name_of(model.task)), std::string(model.description)};
    const auto dims = model.input.dims();
    nlohmann::json entry{{"name", model.name},
                         {"description", model.description},
                         {"task", models::name_of(model.task)},
                         {"input", std::vector<std::int64_t>(dims.begin(), dims.end())},
                         {"classes", model.classes},
                         {"parameters", model.parameters},
                         {"flops_a_sample", flops}};
    if (options.memory) {
      const StepMemory memory = step_memory(model, *network, models::batch_of(model, options.step.training.batch),
                                            *device, options.step.training);
      row.insert(row.begin() + 3, human_bytes(memory.total()));
      entry["batch"] = options.step.training.batch;
      entry["step_bytes"] = memory.total();
    }
    rows.push_back(std::move(row));
    list.push_back(std::move(entry));
  }
  std::cout << (options.json ? list.dump(2) + "\n" : table(rows));
}

}  // namespace

void add_models(CLI::App& app) {
  CLI::App* command = app.add_subcommand("models", "List the networks there are");
  const auto options = std::make_shared<Options>();
  command->add_flag("--memory", options->memory, "Also what a training step needs (prepares each network's kernels)");
  options->step.add(*command);
  command->add_flag("--json", options->json, "Print JSON");
  command->callback([options] { run(*options); });
}

}  // namespace concord::cli
