// The walk over the graph, and what rules of operators share.
#include "concord/onnx/export/exporter.hpp"

#include <fmt/ranges.h>

#include <algorithm>

#include "concord/core/check.hpp"
#include "concord/onnx/export/sampled_grid.hpp"

namespace concord::onnx {

NodeExport::NodeExport(Exporter& exporter, const Node& node, std::int32_t id)
    : exporter_(exporter), node_(node), id_(id), first_node_(exporter.writer_.nodes()) {}

Value NodeExport::output(std::size_t k) const { return {&exporter_.graph_, id_, static_cast<std::int32_t>(k)}; }

GraphWriter& NodeExport::writer() const { return exporter_.writer_; }

const std::string& NodeExport::name_of(const Value& value) const {
  const auto found = exporter_.names_.find(value);
  // A value of a node that was refused: the walk goes on to find all of them.
  static const std::string kRefused = "refused";
  return found == exporter_.names_.end() ? kRefused : found->second;
}

const Sizes& NodeExport::sizes_of(const Value& value) const { return exporter_.output_of(value).sizes; }

const Sizes& NodeExport::out_sizes(std::size_t k) const {
  return exporter_.sizes_.nodes[static_cast<std::size_t>(id_)][k].sizes;
}

bool NodeExport::is_used(std::size_t k) const { return uses_of(output(k)) > 0; }

int NodeExport::uses_of(const Value& value) const {
  const auto found = exporter_.uses_.find(value);
  return found == exporter_.uses_.end() ? 0 : found->second;
}

std::string NodeExport::add(std::string op, Names inputs, Attributes attributes) {
  return add_many(std::move(op), std::move(inputs), std::move(attributes), 1).front();
}

Names NodeExport::add_many(std::string op, Names inputs, Attributes attributes, std::size_t outputs) {
  for (std::string& input : inputs) {
    if (const auto output = renamed_.find(input); output != renamed_.end()) input = output->second;
  }
  return writer().add(std::move(op), std::move(inputs), std::move(attributes), outputs, node_.name);
}

void NodeExport::bind(std::size_t k, const std::string& name) {
  const std::string& own = exporter_.names_.at(output(k));
  if (writer().rename(name, own, first_node_)) {
    renamed_.emplace(name, own);
    return;
  }
  // An input, a constant, or what another output is already.
  static_cast<void>(writer().rename(add("Identity", {name}), own, first_node_));
}

std::string NodeExport::cast(const std::string& x, ElementType type) {
  return add("Cast", {x}, {whole("to", static_cast<std::int64_t>(type))});
}

std::string NodeExport::reshape(const std::string& x, const Sizes& from, const Sizes& to) {
  return from == to ? x : add("Reshape", {x, writer().reshape_target(from, to)});
}

std::string NodeExport::transpose(const std::string& x, std::vector<std::int64_t> order) {
  return std::ranges::is_sorted(order) ? x : add("Transpose", {x}, {wholes("perm", std::move(order))});
}

std::string NodeExport::unsqueeze(const std::string& x, std::vector<std::int64_t> axes) {
  return add("Unsqueeze", {x, writer().integers(axes)});
}

std::string NodeExport::squeeze(const std::string& x, std::vector<std::int64_t> axes) {
  return add("Squeeze", {x, writer().integers(axes)});
}

std::string NodeExport::slice(const std::string& x, std::int64_t axis, std::int64_t start, std::int64_t stop) {
  GraphWriter& w = writer();
  return add("Slice", {x, w.integers({start}), w.integers({stop}), w.integers({axis})});
}

std::string NodeExport::concat(Names parts, std::int64_t axis) {
  return parts.size() == 1 ? parts[0] : add("Concat", std::move(parts), {whole("axis", axis)});
}

std::string NodeExport::reduce(const std::string& op, const std::string& x, std::vector<std::int64_t> axes) {
  // The axes became an input in version 13 for sums, in 18 for the others.
  if (op == "ReduceSum" || opset() >= 18) return add(op, {x, writer().integers(axes)}, {whole("keepdims", 1)});
  return add(op, {x}, {wholes("axes", std::move(axes)), whole("keepdims", 1)});
}

std::string NodeExport::filled(const Sizes& sizes, float value) {
  if (sizes.empty()) return writer().number(value);
  return add("Expand", {writer().number(value), writer().sizes(sizes)});
}

Exporter::Exporter(Graph& graph, GraphSizes sizes, int opset)
    : graph_(graph), sizes_(std::move(sizes)), writer_(opset), needed_(static_cast<std::size_t>(graph.size()), false) {}

const GraphSizes::Output& Exporter::output_of(const Value& value) const {
  return sizes_.nodes[static_cast<std::size_t>(value.node_id())][static_cast<std::size_t>(value.output())];
}

ValueInfo Exporter::info_of(const std::string& name, const Value& value, const std::string& free_batch) const {
  ValueInfo info;
  info.name = name;
  info.type = element_of(value.dtype());
  info.shape.emplace();
  for (const Size& size : output_of(value).sizes) {
    Dimension dimension;
    if (!size.free) {
      dimension.size = size.number;
    } else {
      dimension.name = size.number == 1 ? free_batch : fmt::format("{}{}", size.number, free_batch);
    }
    info.shape->push_back(std::move(dimension));
  }
  return info;
}

void Exporter::find_needed(const std::vector<NamedOutput>& outputs) {
  for (const NamedOutput& output : outputs) {
    needed_[static_cast<std::size_t>(output.value.node_id())] = true;
    ++uses_[output.value];
  }
  for (std::int32_t id = graph_.size() - 1; id >= 0; --id) {
    const Node& node = graph_.node(id);
    const bool is_input = !node.op && !node.variable;
    if (is_input) needed_[static_cast<std::size_t>(id)] = true;
    if (!needed_[static_cast<std::size_t>(id)]) continue;
    std::vector<Value> inputs = node.inputs;
    if (const auto sampled = sampled_grid(Value(&graph_, id, 0), writer_.opset())) inputs = {sampled->x, sampled->grid};
    for (const Value& input : inputs) {
      needed_[static_cast<std::size_t>(input.node_id())] = true;
      ++uses_[input];
    }
  }
}

std::string Exporter::write_node(const Node& node, std::int32_t id) {
  for (const GraphSizes::Output& output : sizes_.nodes[static_cast<std::size_t>(id)]) {
    if (!output.reason.empty()) return output.reason + "; a fixed batch works";
  }
  const Operator& op = *node.op;
  const auto rule = all_rules().find(typeid(op));
  if (rule == all_rules().end()) return "ONNX has no operator for it";
  try {
    NodeExport one(*this, node, id);
    rule->second(one);
  } catch (const Refusal& refusal) {
    return refusal.reason;
  }
  return {};
}

GraphDef Exporter::write(const std::vector<NamedOutput>& outputs, const std::vector<VariablePtr>& fed,
                         const std::function<Tensor(const Variable&)>& value_of, const std::string& free_batch) {
  find_needed(outputs);
  for (const VariablePtr& variable : fed) {
    for (std::int32_t id = 0; id < graph_.size(); ++id) {
      if (graph_.node(id).variable == variable) needed_[static_cast<std::size_t>(id)] = true;
    }
  }
  for (const NamedOutput& output : outputs) {
    CONCORD_CHECK(!writer_.is_taken(output.name), ArgumentError, "two outputs have the name '{}'", output.name);
    static_cast<void>(writer_.unique(output.name));
  }
  const auto each_needed = [&](const auto& work) {
    for (std::int32_t id = 0; id < graph_.size(); ++id) {
      if (needed_[static_cast<std::size_t>(id)]) work(id, graph_.node(id));
    }
  };
  std::vector<ValueInfo> inputs, results;
  each_needed([&](std::int32_t id, const Node& node) {
    if (node.op) return;
    const Value value(&graph_, id, 0);
    CONCORD_CHECK(!writer_.is_taken(node.name), ArgumentError,
                  "the name '{}' of an output is that of {} of the network", node.name,
                  node.variable ? "a parameter" : "an input");
    names_[value] = writer_.unique(node.name);
    if (node.variable) writer_.initializer(node.name, value_of(*node.variable));
    if (node.variable && std::ranges::find(fed, node.variable) == fed.end()) return;
    inputs.push_back(info_of(node.name, value, free_batch));
    const Sizes& sizes = output_of(value).sizes;
    if (!sizes.empty() && sizes[0] == Size{1, true}) writer_.free_batch_of(node.name);
  });
  for (const NamedOutput& output : outputs) {
    if (output.value.node().op) names_.try_emplace(output.value, output.name);
    results.push_back(info_of(output.name, output.value, free_batch));
  }
  each_needed([&](std::int32_t id, const Node& node) {
    if (!node.op) return;
    for (std::int32_t k = 0; k < static_cast<std::int32_t>(node.outputs.size()); ++k) {
      const Value value(&graph_, id, k);
      if (!names_.contains(value)) names_[value] = writer_.unique(value.name());
    }
  });
  std::vector<std::string> refused;
  each_needed([&](std::int32_t id, const Node& node) {
    if (!node.op) return;
    const std::string reason = write_node(node, id);
    if (!reason.empty()) refused.push_back(fmt::format("'{}' ({}): {}", node.name, node.op->name(), reason));
  });
  CONCORD_CHECK(refused.empty(), NotSupported, "the network cannot be written as ONNX:\n  {}",
                fmt::join(refused, "\n  "));
  for (const NamedOutput& output : outputs) {  // of inputs, of variables, and of values with two names
    const std::string& name = names_.at(output.value);
    if (name == output.name) continue;
    const Names copy = writer_.add("Identity", {name}, {}, 1, output.name);
    static_cast<void>(writer_.rename(copy.front(), output.name, writer_.nodes() - 1));
  }
  return std::move(writer_).finish(std::move(inputs), std::move(results), "concord");
}

}  // namespace concord::onnx
