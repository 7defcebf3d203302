// Graph: adding nodes, names, variables.
#include "concord/graph/graph.hpp"

#include "concord/core/check.hpp"
#include "concord/core/philox.hpp"
#include "concord/core/text.hpp"
#include "concord/graph/operator.hpp"

namespace concord {

const Node& Value::node() const { return graph_->node(node_); }
const TensorSpec& Value::spec() const { return node().outputs[static_cast<std::size_t>(output_)]; }
std::string Value::name() const { return output_ == 0 ? node().name : fmt::format("{}:{}", node().name, output_); }

Value Graph::input(std::string name, TensorSpec spec) {
  CONCORD_CHECK(!names_.contains(name), ArgumentError, "the graph already has a value named '{}'", name);
  return append({nullptr, nullptr, std::move(name), {}, {std::move(spec)}});
}

Value Graph::variable(const VariablePtr& variable) {
  if (const auto found = names_.find(variable->name); found != names_.end()) {
    const Node& node = nodes_[static_cast<std::size_t>(found->second)];
    CONCORD_CHECK(node.variable == variable, ShapeError,
                  "two variables are named '{}'; give the modules that own them different names", variable->name);
    return {this, found->second, 0};
  }
  return append({nullptr, variable, variable->name, {}, {variable->spec}});
}

Value Graph::add(std::shared_ptr<const Operator> op, std::vector<Value> inputs) {
  std::vector<TensorSpec> specs;
  specs.reserve(inputs.size());
  std::string name = unique_name(scoped(op->name(), '/'));
  for (const Value& value : inputs) {
    CONCORD_CHECK(value && &value.graph() == this, ArgumentError, "{}: an operand is empty or of another graph", name);
    specs.push_back(value.spec());
  }
  try {
    std::vector<TensorSpec> outputs = op->infer(specs);
    return append({std::move(op), nullptr, std::move(name), std::move(inputs), std::move(outputs)});
  } catch (const ShapeError& error) {
    throw ShapeError(fmt::format("in {}: {}", name, error.what()));
  }
}

void Graph::assign(Value variable, Value value) {
  CONCORD_CHECK(variable && variable.node().variable, ArgumentError, "only a variable can be assigned to");
  CONCORD_CHECK(value && variable.spec() == value.spec(), ShapeError, "'{}' is {}, cannot take {} of '{}'",
                variable.name(), variable.spec().str(), value.spec().str(), value.name());
  for (Assignment& assignment : assignments_) {
    if (assignment.variable == variable) {
      assignment.value = value;
      return;
    }
  }
  assignments_.push_back({variable, value});
}

void Graph::rename(Value value, std::string name) {
  Node& node = nodes_[static_cast<std::size_t>(value.node_id())];
  CONCORD_CHECK(!node.variable, ArgumentError, "the variable '{}' keeps its name", node.name);
  names_.erase(node.name);
  node.name = unique_name(std::move(name));
  names_.emplace(node.name, value.node_id());
}

std::vector<VariablePtr> Graph::variables() const {
  std::vector<VariablePtr> variables;
  for (const Node& node : nodes_) {
    if (node.variable) variables.push_back(node.variable);
  }
  return variables;
}

Value Graph::find(std::string_view name) {
  std::string node_name(name);
  std::int32_t output = 0;
  if (const std::size_t colon = node_name.rfind(':'); colon != std::string::npos && !names_.contains(node_name)) {
    const auto number = number_in_text<std::int32_t>(std::string_view(node_name).substr(colon + 1));
    if (!number || *number < 0) return {};
    output = *number;
    node_name.resize(colon);
  }
  const auto found = names_.find(node_name);
  if (found == names_.end()) return {};
  if (static_cast<std::size_t>(output) >= node(found->second).outputs.size()) return {};
  return {this, found->second, output};
}

Value Graph::random_state() {
  if (!random_state_) {
    random_state_ = std::make_shared<Variable>(
        Variable{"random.state", {DType::i32, Shape{4}}, {Initializer::Kind::seed, 0, 0}, false, {}});
  }
  return variable(random_state_);
}

std::uint32_t Graph::purpose(std::string_view name) { return philox_purpose(name); }

std::string Graph::scoped(std::string_view name, char separator) const {
  std::string path;
  for (const std::string& scope : scopes_) path += scope + separator;
  return path.append(name);
}

std::string Graph::unique_name(std::string name) {
  if (!names_.contains(name)) return name;
  int& next = next_suffix_[name];
  std::string candidate;
  do {
    candidate = fmt::format("{}_{}", name, ++next);
  } while (names_.contains(candidate));
  return candidate;
}

Value Graph::append(Node node) {
  const auto id = static_cast<std::int32_t>(nodes_.size());
  names_.emplace(node.name, id);
  nodes_.push_back(std::move(node));
  return {this, id, 0};
}

std::vector<Value> Operator::gradient(const Node& node, std::span<const Value>, const std::vector<bool>&) const {
  throw NotSupported(fmt::format("operator {} (node '{}') has no gradient", name(), node.name));
}

Cost Operator::cost(std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs) const {
  Cost cost;
  for (const TensorSpec& spec : inputs) cost.bytes += static_cast<double>(spec.bytes());
  for (const TensorSpec& spec : outputs) {
    cost.bytes += static_cast<double>(spec.bytes());
    cost.flops += static_cast<double>(spec.shape.elements());
  }
  return cost;
}

}  // namespace concord
