// concord models: the networks there are, and what they cost.
#include <fmt/format.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "concord/cli/step_memory.hpp"
#include "concord/core/human_bytes.hpp"
#include "concord/models/summary.hpp"

namespace concord::cli {
namespace {

struct ModelsArguments {
  StepMemoryOptions step;
  bool json = false;
};

nlohmann::json sizes_of(const models::Model& model) {
  nlohmann::json sizes = nlohmann::json::object();
  for (const models::Size& size : model.sizes) sizes[std::string(size.name)] = size.published;
  return sizes;
}

/// "resnet20:depth=3,width=16" for each network that has sizes.
std::string sizable_names() {
  std::string names;
  for (const models::Model& model : models::all()) {
    if (model.sizes.empty()) continue;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", model.name);
    char separator = ':';
    for (const models::Size& size : model.sizes) {
      names += fmt::format("{}{}={}", separator, size.name, size.published);
      separator = ',';
    }
  }
  return names;
}

void run_models(const ModelsArguments& options) {
  const std::int64_t batch = options.step.training.batch;
  const DevicePtr device = options.step.open();
  std::vector<std::vector<std::string>> rows{
      {"network", "parameters", "GFLOP per sample", fmt::format("step of {}", batch), "input", "task", ""}};
  nlohmann::json list = nlohmann::json::array();
  for (const models::Model& model : models::all()) {
    const auto network = models::make(model.name);
    const TensorSpec samples = models::batch_of(model, batch);
    const double flops = models::summarize(*network, samples).flops / static_cast<double>(batch);
    const train::Source source = source_of(model, *network, model.input);
    const auto memory = step_memory_if_possible(model, *network, source, batch, device, options.step.training);
    rows.push_back({std::string(model.name), fmt::format("{}", model.parameters), fmt::format("{:.3f}", flops / 1e9),
                    memory ? human_bytes(memory->total()) : "too large", models::batch_of(model, 1).str(),
                    std::string(models::name_of(model.task)), std::string(model.description)});
    const auto dims = model.input.dims(), least = model.least.dims();
    list.push_back({{"name", model.name},
                    {"description", model.description},
                    {"task", models::name_of(model.task)},
                    {"input", std::vector<std::int64_t>(dims.begin(), dims.end())},
                    {"least_input", std::vector<std::int64_t>(least.begin(), least.end())},
                    {"dtype", name_of(model.dtype)},
                    {"classes", model.classes},
                    {"sizes", sizes_of(model)},
                    {"parameters", model.parameters},
                    {"flops_a_sample", flops},
                    {"batch", batch},
                    {"step_bytes", memory ? nlohmann::json(memory->total()) : nlohmann::json()}});
  }
  std::cout << (options.json ? json_text(list)
                             : table(rows) +
                                   "GFLOP: of the forward pass; a multiply-add counts as two. step: memory of values "
                                   "and variables without workspaces of kernels; too large: one value exceeds the "
                                   "largest allocation of the device, or the largest index of kernels\n" +
                                   fmt::format("networks with sizes in their names: {}\n", sizable_names()));
}

}  // namespace

void add_models(CLI::App& app) {
  CLI::App* command = app.add_subcommand("models", "List the networks with their cost");
  const auto options = std::make_shared<ModelsArguments>();
  options->step.add(*command);
  command->add_flag("--json", options->json, "Print JSON");
  command->callback([options] { run_models(*options); });
}

}  // namespace concord::cli
