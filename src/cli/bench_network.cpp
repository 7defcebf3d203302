// BenchNetwork: the programs of a training step and of inference.
#include "concord/cli/bench_network.hpp"

#include <fmt/format.h>

#include "concord/cli/random_data.hpp"
#include "concord/compile/memory_need.hpp"

namespace concord::cli {

void BenchOptions::add(CLI::App& command) {
  training.add_model(command);
  device.add(command);
  command.add_option("--input", input, "One sample, such as 3x64x64 [as published]")->check(not_empty());
  training.add_training(command);
  precision.add(command);
  memory_budget.add(command);
}

BenchNetwork::BenchNetwork(const BenchOptions& options, DevicePtr device)
    : options_(options),
      model_(find_model(options.training.model)),
      sample_(sample_shape(options.input, model_)),
      network_(make_network(model_, {.input = sample_})),
      source_(source_of(model_, *network_, sample_)),
      device_(std::move(device)),
      variables_(std::make_shared<Variables>(device_, options.training.seed)),
      groups_(options.training.make_groups(*network_, source_)) {}

const Dataset& BenchNetwork::data() {
  if (!data_) data_ = random_data(model_, sample_, options_.training.batch, options_.training.seed);
  return *data_;
}

Program BenchNetwork::training_step() {
  Program program = compiled(&BenchNetwork::traced_step,
                             {.precision = options_.precision.get(), .memory_budget = options_.memory_budget.bytes()});
  train::write_batch(program, data());
  return program;
}

Program BenchNetwork::inference() {
  Program program = compiled(&BenchNetwork::traced_inference, {.precision = options_.precision.get()});
  train::write_batch(program, data());
  return program;
}

std::vector<TunableProduct> BenchNetwork::step_products() { return products(&BenchNetwork::traced_step); }

std::vector<TunableProduct> BenchNetwork::inference_products() { return products(&BenchNetwork::traced_inference); }

std::vector<Value> BenchNetwork::traced_inference(Graph& graph, std::int64_t batch) {
  graph.set_training(false);
  std::vector<Value> outputs;
  for (const NamedValue& output : (*network_)(train::add_inputs(graph, source_, batch).features)) {
    outputs.push_back(output.value);
  }
  return outputs;
}

std::vector<Value> BenchNetwork::traced_step(Graph& graph, std::int64_t batch) {
  const train::BatchValues values = train::add_inputs(graph, source_, batch);
  const Value loss = objective_of(model_)((*network_)(values.features), values.labels);
  optim::minimize(loss, options_.training.make_optimizer(),
                  {.groups = groups_, .loss_scale = optim::loss_scale_for(options_.precision.get())});
  return {loss};
}

Program BenchNetwork::compiled(Trace trace, const CompileOptions& options) {
  try {
    Graph graph;
    const std::vector<Value> results = (this->*trace)(graph, options_.training.batch);
    return compile(graph, results, variables_, options);
  } catch (const Error&) {
    rethrow_with_advice(trace, options);
  }
}

std::vector<TunableProduct> BenchNetwork::products(Trace trace) {
  const CompileOptions options{.precision = options_.precision.get()};
  Graph graph;
  const std::vector<Value> results = (this->*trace)(graph, options_.training.batch);
  try {
    return tunable_products(graph, results, *device_, options);
  } catch (const Error&) {
    if (device_->tuner() == nullptr) throw;  // at no batch
    rethrow_with_advice(trace, options);
  }
}

void BenchNetwork::rethrow_with_advice(Trace trace, const CompileOptions& options) {
  rethrow_with_advice_on_batch(options_.training.batch, *device_, [&](std::int64_t batch, MemoryDetail detail) {
    Graph graph;
    const std::vector<Value> results = (this->*trace)(graph, batch);
    return memory_need(graph, results, *variables_, detail, options).total();
  });
}

}  // namespace concord::cli
