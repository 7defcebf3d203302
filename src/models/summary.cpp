// Summary: nodes of a graph grouped by the module that added them.
#include "concord/models/summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "concord/graph/operator.hpp"

namespace concord::models {
namespace {

struct Group {
  LayerSummary layer;
  double most = -1;  // work of the operator that gave the kind
  std::int32_t last = 0;
};

/// The nodes that the outputs are computed from: not those of running statistics.
std::vector<bool> leading_to(const Graph& graph, const Values& outputs) {
  std::vector<bool> leads(static_cast<std::size_t>(graph.size()), false);
  for (const NamedValue& output : outputs) leads[static_cast<std::size_t>(output.value.node_id())] = true;
  for (std::int32_t id = graph.size() - 1; id >= 0; --id) {
    if (!leads[static_cast<std::size_t>(id)]) continue;
    for (const Value& input : graph.node(id).inputs) leads[static_cast<std::size_t>(input.node_id())] = true;
  }
  return leads;
}

void add_operator(Group& group, const Node& node, std::int32_t id, bool leads_to_output) {
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
  if (leads_to_output) group.layer.output = node.outputs[0].shape;
  group.last = id;
}

}  // namespace

Summary summarize(nn::Module& network, const TensorSpec& batch) {
  return summarize(network, std::vector<NamedSpec>{{{}, batch}});
}

Summary summarize(nn::Module& network, const std::vector<NamedSpec>& inputs) {
  Graph graph;
  Values values;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    values.add(inputs[i].name, graph.input(fmt::format("input{}", i), inputs[i].spec));
  }
  const Values outputs = network(values);
  std::map<std::string, Group> groups;
  const auto group_of = [&](const std::string& path) -> Group& {
    Group& group = groups[path];
    group.layer.path = path;
    return group;
  };
  const std::vector<bool> leads = leading_to(graph, outputs);
  Summary summary;
  summary.output = outputs[0].shape();
  for (std::int32_t id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    if (node.op) {
      add_operator(group_of(node.module), node, id, leads[static_cast<std::size_t>(id)]);
    } else if (node.variable) {
      const std::int64_t elements = node.variable->spec.shape.elements();
      if (node.variable->trainable) group_of(node.module).layer.parameters += elements;
      if (node.variable->role != VariableRole::random) {
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
