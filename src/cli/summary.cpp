// concord summary: the layers of a network, and what training it takes.
#include "concord/models/summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "concord/cli/step_memory.hpp"
#include "concord/core/human_bytes.hpp"

namespace concord::cli {
namespace {

struct SummaryArguments {
  StepMemoryOptions step;
  std::string input;
  int classes = 0;
  bool json = false;
};

std::vector<std::int64_t> dims_of(const Shape& shape) { return {shape.dims().begin(), shape.dims().end()}; }

std::string with_commas(std::int64_t number) {
  std::string text = std::to_string(number);
  for (std::ptrdiff_t at = static_cast<std::ptrdiff_t>(text.size()) - 3; at > 0; at -= 3) {
    text.insert(static_cast<std::size_t>(at), 1, ',');
  }
  return text;
}

nlohmann::json as_json(const models::Model& model, const TensorSpec& batch, const models::Summary& summary,
                       const MemoryNeed& memory, const DeviceInfo& device, const StepMemoryOptions& step) {
  nlohmann::json json{{"name", model.name},
                      {"task", models::name_of(model.task)},
                      {"input", dims_of(batch.shape)},
                      {"output", dims_of(summary.output)},
                      {"parameters", {{"trainable", summary.trainable}, {"non_trainable", summary.non_trainable}}},
                      {"forward_flops", summary.flops},
                      {"optimizer", step.training.optimizer},
                      {"device", device.id},
                      {"step_bytes", memory.total()},
                      {"step_arena_bytes", memory.arena},
                      {"step_variable_bytes", memory.new_variables}};
  for (const models::LayerSummary& layer : summary.layers) {
    json["layers"].push_back({{"path", layer.path},
                              {"kind", layer.kind},
                              {"output", dims_of(layer.output)},
                              {"parameters", layer.parameters},
                              {"flops", layer.flops}});
  }
  return json;
}

std::string as_text(const models::Model& model, const TensorSpec& batch, const models::Summary& summary,
                    const MemoryNeed& memory, const DeviceInfo& device, const StepMemoryOptions& step) {
  std::vector<std::vector<std::string>> rows{{"layer", "kind", "output", "parameters", "MFLOP"}};
  for (const models::LayerSummary& layer : summary.layers) {
    rows.push_back({layer.path.empty() ? "(network)" : layer.path, layer.kind, layer.output.str(),
                    layer.parameters > 0 ? with_commas(layer.parameters) : "",
                    fmt::format("{:.3f}", layer.flops / 1e6)});
  }
  std::string text =
      fmt::format("{}: {}\n{} -> {}\n\n", model.name, model.description, batch.str(), summary.output.str());
  text += table(rows);
  text +=
      fmt::format("\nparameters: {} trainable ({}), {} in running statistics\n", with_commas(summary.trainable),
                  human_bytes(static_cast<std::uint64_t>(summary.trainable) * 4), with_commas(summary.non_trainable));
  text += fmt::format("forward: {:.3f} GFLOP per batch, {:.3f} per sample\n", summary.flops / 1e9,
                      summary.flops / 1e9 / static_cast<double>(batch.shape[0]));
  text += fmt::format("a training step with {} on {}: {} ({} of values and workspaces, {} of variables)\n",
                      step.training.optimizer, device.name, human_bytes(memory.total()), human_bytes(memory.arena),
                      human_bytes(memory.new_variables));
  return text;
}

void run_summary(const SummaryArguments& options) {
  const models::Model& model = find_model(options.step.training.model);
  const Shape sample = sample_shape(options.input, model);
  const auto network = make_network(model, {.classes = options.classes, .input = sample});
  const std::int64_t size = options.step.training.batch;
  const train::Source source = source_of(model, *network, sample);
  std::vector<models::NamedSpec> inputs;
  for (const ColumnSpec& column : source.features) {
    inputs.push_back({column.name, {column.spec.dtype, train::with_batch(column.spec.shape, size)}});
  }
  const TensorSpec batch = inputs[0].spec;
  const models::Summary summary = models::summarize(*network, inputs);
  const DevicePtr device = options.step.open();
  const MemoryNeed memory = step_memory(model, *network, source, size, device, options.step.training);
  if (options.json) {
    std::cout << json_text(as_json(model, batch, summary, memory, device->info(), options.step));
  } else {
    std::cout << as_text(model, batch, summary, memory, device->info(), options.step);
  }
}

}  // namespace

void add_summary(CLI::App& app) {
  CLI::App* command = app.add_subcommand("summary", "Layers, parameters, FLOPs and memory of a network");
  const auto options = std::make_shared<SummaryArguments>();
  options->step.training.add_model(*command);
  options->step.add(*command);
  command->add_option("--input", options->input, "One sample, such as 3x64x64 [as published]")->check(not_empty());
  command->add_option("--classes", options->classes, "[as published]")->check(count());
  command->add_flag("--json", options->json, "Print JSON");
  command->callback([options] { run_summary(*options); });
}

}  // namespace concord::cli
