// The graph of a training step, and its runs.
#include "concord/compare/run/training_step.hpp"

#include <algorithm>
#include <cmath>

#include "concord/optim/minimize.hpp"
#include "concord/train/trace.hpp"

namespace concord {

TrainingStep::TrainingStep(nn::Module& network, const Objective& objective, const optim::Optimizer& optimizer,
                           const optim::MinimizeOptions& how, Precision products, const train::Source& source,
                           std::int64_t batch)
    : precision(products) {
  const train::BatchValues values = train::add_inputs(graph, source, batch);
  const Values outputs = network(values.features);
  train::check_classes(objective, outputs, values.labels, source);
  loss = objective(outputs, values.labels);
  ignored = train::ignored_labels(graph, values.labels);
  optim::MinimizeOptions scaled = how;
  scaled.loss_scale = optim::loss_scale_for(precision);
  optim::minimize(loss, optimizer, scaled);
}

Program TrainingStep::compiled(const VariablesPtr& variables, CompileOptions options) const {
  options.precision = precision;
  return compile(graph, {&loss, 1}, variables, options);
}

Replica::Replica(const TrainingStep& step, const DevicePtr& on, std::uint64_t seed)
    : device(on),
      variables(std::make_shared<Variables>(on, seed)),
      program(step.compiled(variables)),
      loss_name_(step.loss.name()) {
  start_with(step.weights);
}

void Replica::start_with(const io::TensorMap& weights) {
  for (const auto& [name, tensor] : weights) {
    if (variables->contains(name)) variables->write(name, tensor);
  }
}

void Replica::run(const Batch& batch) {
  feed(program, batch);
  program.run();
}

float Replica::loss() const { return program.read(loss_name_).values<float>()[0]; }

void Replica::restart(const TrainingStep& step) {
  for (const VariablePtr& variable : step.graph.variables()) {
    if (!variables->contains(variable->name)) continue;  // the step does not need it
    variables->write(variable->name, initial_value(*variable, variables->seed()));
  }
  start_with(step.weights);
}

double relative_deviation(float a, float expected) {
  const auto base = static_cast<double>(expected);
  const double deviation = std::abs(static_cast<double>(a) - base) / std::max(std::abs(base), 1e-30);
  return std::isnan(deviation) ? INFINITY : deviation;
}

LossDeviation loss_deviation(const std::vector<float>& losses, const std::vector<float>& expected) {
  LossDeviation deviation;
  for (std::size_t i = 0; i < losses.size(); ++i) {
    const double one = relative_deviation(losses[i], expected[i]);
    if (one > deviation.largest) deviation = {one, static_cast<std::int64_t>(i) + 1};
  }
  return deviation;
}

void feed(Program& program, const Batch& batch) {
  for (const auto& [name, values] : batch) {
    if (program.has_input(name)) program.write(name, values);
  }
}

}  // namespace concord
