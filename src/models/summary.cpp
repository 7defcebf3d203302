// Summary: nodes of a graph grouped by the module that added them, which their names tell.
#include "concord/models/summary.hpp"

#include <algorithm>
#include <map>

#include "concord/graph/operator.hpp"

namespace concord::models {
namespace {

/// "layer1/0/conv1/conv2d" → "layer1.0.conv1"; "layer1.0.conv1.weight" → the same.
std::string module_of(const std::string& name, char separator) {
  const std::size_t end = name.rfind(separator);
  if (end == std::string::npos) return {};
  std::string path = name.substr(0, end);
  std::replace(path.begin(), path.end(), separator, '.');
  return path;
}

struct Group {
  LayerSummary layer;
  double most = -1;  // work of the operator that gave the kind
  std::int32_t last = 0;
};

void add_operator(Group& group, const Node& node, std::int32_t id) {
  std::vector<TensorSpec> inputs;
  for (const Value& input : node.inputs) inputs.push_back(input.spec());
  const Cost cost = node.op->cost(inputs, node.outputs);
  group.layer.flops += cost.flops;
  // Operators that only move values have no FLOPs: their bytes decide between them.
  const double work = cost.flops + 1e-6 * cost.bytes;
  if (work > group.most) {
    group.most = work;
    group.layer.kind = std::string(node.op->name());
  }
  group.layer.output = node.outputs[0].shape;
  group.last = id;
}

}  // namespace

Summary summarize(nn::Module& network, const TensorSpec& batch) {
  Graph graph;
  const Value output = network(graph.input("input", batch));
  std::map<std::string, Group> groups;
  const auto group_of = [&](const std::string& path) -> Group& {
    Group& group = groups[path];
    group.layer.path = path;
    return group;
  };
  Summary summary;
  summary.output = output.shape();
  for (std::int32_t id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    if (node.op) {
      // What keeps running statistics stands beside the layer's result, and is not its last operator.
      const bool statistics = node.op->name() == "running_statistics";
      Group& group = group_of(module_of(node.name, '/'));
      const Shape shape = group.layer.output;
      add_operator(group, node, id);
      if (statistics) group.layer.output = shape;
    } else if (node.variable) {
      const std::int64_t elements = node.variable->spec.shape.elements();
      if (node.variable->trainable) group_of(module_of(node.variable->name, '.')).layer.parameters += elements;
      if (node.variable->name != "random.state") {
        (node.variable->trainable ? summary.trainable : summary.non_trainable) += elements;
      }
    }
  }
  std::vector<const Group*> ordered;
  for (const auto& [path, group] : groups) ordered.push_back(&group);
  std::stable_sort(ordered.begin(), ordered.end(), [](const Group* a, const Group* b) { return a->last < b->last; });
  for (const Group* group : ordered) {
    summary.layers.push_back(group->layer);
    summary.flops += group->layer.flops;
  }
  return summary;
}

}  // namespace concord::models
