// BenchNetwork: the programs of a training step and of inference.
#include "bench_network.hpp"

#include <fmt/format.h>

#include "concord/compile/memory_need.hpp"
#include "random_data.hpp"

namespace concord::cli {

void BenchOptions::add(CLI::App& command) {
  training.add_model(command);
  device.add(command);
  command.add_option("--input", input, "One sample, such as 3x64x64 [as published]");
  training.add_training(command);
  precision.add(command);
  memory_budget.add(command);
}

BenchNetwork::BenchNetwork(const BenchOptions& options, DevicePtr device)
    : options_(options),
      model_(models::find(options.training.model)),
      sample_(sample_shape(options.input, model_)),
      network_(models::make(model_.name, {.input = sample_})),
      device_(std::move(device)),
      variables_(std::make_shared<Variables>(device_, options.training.seed)),
      batch_(models::batch_of(model_, sample_, options.training.batch)),
      groups_(options.training.make_groups(*network_, models::batch_of(model_, sample_, 2))) {}

const Dataset& BenchNetwork::data() {
  if (!data_) data_ = random_data(model_, sample_, options_.training.batch, options_.training.seed);
  return *data_;
}

Program BenchNetwork::training_step() {
  Program program = compiled_step();
  program.write("labels", data().labels);
  program.write("features", data().features);
  return program;
}

Program BenchNetwork::inference() {
  Graph graph;
  const Value output = traced_inference(graph);
  Program program = compile(graph, {&output, 1}, variables_, {.precision = options_.precision.get()});
  program.write("features", data().features);
  return program;
}

std::vector<TunableProduct> BenchNetwork::step_products() {
  Graph graph;
  const Value loss = traced_step(graph, options_.training.batch);
  return tunable_products(graph, {&loss, 1}, *device_, {.precision = options_.precision.get()});
}

std::vector<TunableProduct> BenchNetwork::inference_products() {
  Graph graph;
  const Value output = traced_inference(graph);
  return tunable_products(graph, {&output, 1}, *device_, {.precision = options_.precision.get()});
}

Value BenchNetwork::traced_inference(Graph& graph) {
  graph.set_training(false);
  return (*network_)(graph.input("features", batch_));
}

Value BenchNetwork::traced_step(Graph& graph, std::int64_t batch) {
  const Value output = (*network_)(graph.input("features", models::batch_of(model_, sample_, batch)));
  const Value labels = graph.input("labels", models::target_of(model_.task, output.shape()));
  const Value loss = models::loss_of(model_.task)(output, labels);
  optim::minimize(loss, options_.training.make_optimizer(),
                  {.groups = groups_, .loss_scale = optim::loss_scale_for(options_.precision.get())});
  return loss;
}

Program BenchNetwork::compiled_step() {
  try {
    Graph graph;
    const Value loss = traced_step(graph, options_.training.batch);
    return compile(graph, {&loss, 1}, variables_, step_options());
  } catch (const OutOfMemory& error) {
    const auto need = [&](std::int64_t batch, MemoryDetail detail) {
      Graph graph;
      const Value loss = traced_step(graph, batch);
      return memory_need(graph, {&loss, 1}, *variables_, detail, step_options()).total();
    };
    throw OutOfMemory(fmt::format("{}. {}", error.what(), advice_on_batch(options_.training.batch, *device_, need)));
  }
}

CompileOptions BenchNetwork::step_options() const {
  return {.precision = options_.precision.get(), .memory_budget = options_.memory_budget.bytes()};
}

}  // namespace concord::cli
