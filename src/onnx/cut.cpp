// Cutting: from the outputs backwards, since the nodes of a graph come after what they read.
#include "concord/onnx/cut.hpp"

#include <algorithm>
#include <set>

#include "concord/core/check.hpp"
#include "concord/core/nearest_name.hpp"
#include "concord/core/utf8.hpp"

namespace concord::onnx {
namespace {

using NameSet = std::set<std::string>;

/// What a node reads; the nodes in its branches may read names of the graph around them.
void add_read_names(const NodeDef& node, NameSet& names) {
  names.insert(node.inputs.begin(), node.inputs.end());
  for (const Attribute& attribute : node.attributes) {
    for (const GraphDef& branch : attribute.graphs) {
      for (const NodeDef& inner : branch.nodes) add_read_names(inner, names);
      for (const ValueInfo& output : branch.outputs) names.insert(output.name);
    }
  }
}

ValueInfo described(const GraphDef& graph, const std::string& name) {
  for (const auto* list : {&graph.outputs, &graph.values, &graph.inputs}) {
    const auto found = std::ranges::find(*list, name, &ValueInfo::name);
    if (found != list->end()) return *found;
  }
  ValueInfo info;
  info.name = name;
  return info;
}

}  // namespace

void cut_at(GraphDef& graph, const std::vector<std::string>& outputs, const std::string& file) {
  std::vector<std::string> known;
  for (const ValueInfo& input : graph.inputs) known.push_back(input.name);
  for (const TensorProto& initializer : graph.initializers) known.push_back(initializer.name);
  for (const NodeDef& node : graph.nodes) known.insert(known.end(), node.outputs.begin(), node.outputs.end());
  for (const std::string& name : outputs) {
    const bool is_known = !name.empty() && std::ranges::find(known, name) != known.end();
    const auto nearest = is_known ? std::nullopt : nearest_name(name, known);
    CONCORD_CHECK(is_known, ArgumentError, "{}: there is no value '{}' to return{}", file, printable(name),
                  nearest ? fmt::format("; did you mean {}?", *nearest) : "");
  }
  std::vector<ValueInfo> cut;
  for (const std::string& name : outputs) cut.push_back(described(graph, name));
  NameSet needed(outputs.begin(), outputs.end());
  std::vector<NodeDef> kept;
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    const auto is_needed = [&](const std::string& output) { return !output.empty() && needed.contains(output); };
    if (std::ranges::none_of(node->outputs, is_needed)) continue;
    add_read_names(*node, needed);
    kept.push_back(std::move(*node));
  }
  std::ranges::reverse(kept);
  graph.nodes = std::move(kept);
  graph.outputs = std::move(cut);
  const auto is_left_out = [&](const auto& named) { return !needed.contains(named.name); };
  std::erase_if(graph.initializers, is_left_out);
  std::erase_if(graph.inputs, is_left_out);
}

}  // namespace concord::onnx
