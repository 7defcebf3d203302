// onnx::save_training: traces a step of training and writes it as a graph of which every changed variable is an input
// and an output.
#include <algorithm>

#include "concord/core/check.hpp"
#include "concord/onnx/export.hpp"
#include "concord/onnx/export/model_file.hpp"

namespace concord::onnx {
namespace {

constexpr const char* kUpdated = ".updated";

/// The algorithm of TrainingInfoProto: the step is in the graph of the model, and this names its results.
TrainingInfo training_of(const std::vector<VariablePtr>& changed, const GraphDef& step) {
  TrainingInfo info;
  info.algorithm.name = "update";
  for (const VariablePtr& variable : changed) {
    const std::string updated = variable->name + kUpdated, bound = variable->name + ".bound";
    NodeDef copy;
    copy.op_type = "Identity";
    copy.name = bound;
    copy.inputs = {updated};
    copy.outputs = {bound};
    info.algorithm.nodes.push_back(std::move(copy));
    for (const ValueInfo& output : step.outputs) {
      if (output.name != updated) continue;
      info.algorithm.outputs.push_back(output);
      info.algorithm.outputs.back().name = bound;
    }
    info.update_bindings.emplace_back(variable->name, bound);
  }
  return info;
}

}  // namespace

void save_training(const std::filesystem::path& path, nn::Module& network, const Loss& loss,
                   const optim::Optimizer& optimizer, const TrainingExportOptions& options) {
  constexpr int kLeastTrainingOpset = 16;  // gradients add at indices
  check_opset(options.opset, kLeastTrainingOpset);
  CONCORD_CHECK(options.input.rank() > 0, ArgumentError, "an export needs the shape of the input, with its batch");
  Graph graph;
  graph.set_training(true);
  const Value prediction = network(graph.input("input", {options.dtype, options.input}));
  const Value value = loss(prediction, graph.input("target", options.target));
  static_cast<void>(optim::minimize(value, optimizer, options.minimize));

  std::vector<NamedOutput> outputs{{"loss", value}};
  std::vector<VariablePtr> changed;
  for (const Assignment& assignment : graph.assignments()) {
    changed.push_back(assignment.variable.node().variable);
    outputs.push_back({changed.back()->name + kUpdated, assignment.value});
  }
  std::vector<VariablePtr> fed = changed;
  for (const VariablePtr& variable : graph.variables()) {
    // The host writes these: the learning rate of the next step.
    const bool is_read = variable->role == VariableRole::optimizer;
    if (is_read && std::ranges::find(fed, variable) == fed.end()) fed.push_back(variable);
  }
  Exporter exporter(graph, sizes_of(graph), options.opset);
  const WeightSource weights(options.weights, options.seed);
  Model model = new_model(options.opset);
  model.graph = exporter.write(outputs, fed, [&](const Variable& one) { return weights.value_of(one); }, {});
  model.training.push_back(training_of(changed, model.graph));
  write_file(path, model);
}

}  // namespace concord::onnx
