// Graph: adding nodes, names, variables.
#include "concord/graph/graph.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

#include "concord/core/check.hpp"
#include "concord/core/host_memory.hpp"
#include "concord/core/philox.hpp"
#include "concord/core/text.hpp"
#include "concord/core/utf8.hpp"
#include "concord/graph/operator.hpp"

namespace concord {

namespace {

/// The places of all graphs so far. Never destroyed: values in static objects may be asked at the end of the process.
class Places {
 public:
  static Places& instance() {
    static Places& places = *new Places;  // NOLINT(cppcoreguidelines-owning-memory)
    return places;
  }
  GraphPlace& take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) {
      GraphPlace& place = places_.emplace_back();
      free_.reserve(places_.size());  // so that giving back allocates nothing
      return place;
    }
    GraphPlace& place = *free_.back();
    free_.pop_back();
    return place;
  }
  void give_back(GraphPlace& place) {
    place.graph = nullptr;
    ++place.generation;
    const std::lock_guard lock(mutex_);
    free_.push_back(&place);
  }

 private:
  std::mutex mutex_;
  std::deque<GraphPlace> places_;
  std::vector<GraphPlace*> free_;
};

}  // namespace

Value::Value(Graph* graph, std::int32_t node, std::int32_t output)
    : place_(graph == nullptr ? nullptr : &graph->place_),
      generation_(graph == nullptr ? 0 : graph->place_.generation.load(std::memory_order_relaxed)),
      node_(node),
      output_(output) {}

void Value::refuse() const {
  throw ArgumentError(place_ == nullptr ? "a Value is empty: it was never assigned, or the function that should return "
                                          "it (a module's forward, a loss) returned {}"
                                        : "a Value is used after its Graph is gone: a value is valid as long as its "
                                          "graph; keep the Graph, or read results by name from the Program");
}

const Node& Value::node() const { return graph().node(node_); }
const TensorSpec& Value::spec() const {
  const std::vector<TensorSpec>& outputs = node().outputs;
  CONCORD_CHECK(output_ >= 0 && static_cast<std::size_t>(output_) < outputs.size(), ArgumentError,
                "the node '{}' has no output {}: it has {}", node().name, output_, outputs.size());
  return outputs[static_cast<std::size_t>(output_)];
}
std::string Value::name() const { return output_ == 0 ? node().name : fmt::format("{}:{}", node().name, output_); }

Graph::Graph() : place_(with_host_memory("making a graph", []() -> GraphPlace& { return Places::instance().take(); })) {
  place_.graph = this;
}
Graph::~Graph() { Places::instance().give_back(place_); }

void Graph::refuse(std::int32_t id) const {
  throw ArgumentError(fmt::format("there is no node {} in this graph of {}: a value of another graph?", id, size()));
}

void Graph::require_own(const Value& value, std::string_view what) const {
  CONCORD_CHECK(value, ArgumentError, "{} is an empty Value", what);
  CONCORD_CHECK(&value.graph() == this, ArgumentError,
                "{} is '{}' of another graph: the values of one computation belong to one Graph", what, value.name());
}

Value Graph::input(std::string name, TensorSpec spec) {
  CONCORD_CHECK(!is_taken(name), ArgumentError, "the graph already has a value named '{}'", name);
  return append({nullptr, nullptr, std::move(name), {}, {std::move(spec)}});
}

Value Graph::variable(const VariablePtr& variable) {
  CONCORD_CHECK(variable, ArgumentError, "a graph needs a variable, got null");
  const auto found = names_.find(variable->name);
  // A parameter has the name that it was traced with, which may be another one in another graph.
  const auto is_it = [&](const Node& node) {
    return node.variable && !node.variable.owner_before(variable) && !variable.owner_before(node.variable);
  };
  if (found != names_.end() && is_it(node(found->second))) return {this, found->second, 0};
  if (const auto same = std::ranges::find_if(nodes_, is_it); same != nodes_.end()) {
    return {this, static_cast<std::int32_t>(same - nodes_.begin()), 0};
  }
  if (const Value holder = find(variable->name); holder && holder.name() == variable->name) {
    Node& node = nodes_[static_cast<std::size_t>(holder.node_id())];
    CONCORD_CHECK(!node.variable, ShapeError,
                  "two variables are named '{}', {} and {}; give the modules that own them different names",
                  variable->name, description_of(node.variable->role), description_of(variable->role));
    CONCORD_CHECK(node.op, ShapeError,
                  "a variable ({}) and an input are both named '{}'; give the module that owns it another name",
                  description_of(variable->role), variable->name);
    const std::string before = std::exchange(node.name, unique_name(node.name, node.outputs.size()));
    names_.erase(before);
    names_.emplace(node.name, holder.node_id());
  }
  return append({nullptr, variable, variable->name, {}, {variable->spec}});
}

Value Graph::add(std::shared_ptr<const Operator> op, std::vector<Value> inputs) {
  return with_host_memory("building a graph", [&] {
    std::vector<TensorSpec> specs;
    specs.reserve(inputs.size());
    std::string name = unique_name(scoped(op->name(), '/'));
    for (const Value& value : inputs) {
      if (!value || &value.graph() != this) require_own(value, fmt::format("{}: operand {}", name, specs.size()));
      specs.push_back(value.spec());
    }
    try {
      std::vector<TensorSpec> outputs = op->infer(specs);
      if (outputs.size() > 1) name = unique_name(std::move(name), outputs.size());
      return append({std::move(op), nullptr, std::move(name), std::move(inputs), std::move(outputs)});
    } catch (const ShapeError& error) {
      throw ShapeError(fmt::format("in {}: {}", name, error.what()));
    }
  });
}

void Graph::note_joined(std::int32_t node, std::vector<Value> values) {
  if (node < 0 || node >= size()) refuse(node);
  nodes_[static_cast<std::size_t>(node)].joined = std::move(values);
}

void Graph::assign(Value variable, Value value) { add_assignment({variable, value}); }

void Graph::assign_early(Value variable, Value value) { add_assignment({variable, value, true}); }

void Graph::exchange(Value variable, Value value) {
  assign_early(variable, value);
  if (std::ranges::find(exchanged_, variable) == exchanged_.end()) exchanged_.push_back(variable);
}

void Graph::add_assignment(const Assignment& added) {
  const auto& [variable, value, is_early] = added;
  require_own(variable, "the assigned variable");
  require_own(value, "the value assigned to '" + variable.name() + "'");
  CONCORD_CHECK(variable.node().variable, ArgumentError, "only a variable can be assigned to, not '{}'",
                variable.name());
  CONCORD_CHECK(variable.spec() == value.spec(), ShapeError, "'{}' is {}, cannot be assigned {} of '{}'",
                variable.name(), variable.spec().str(), value.spec().str(), value.name());
  for (Assignment& assignment : assignments_) {
    if (assignment.variable == variable && assignment.is_early == is_early) {
      assignment.value = value;
      return;
    }
  }
  assignments_.push_back(added);
}

void Graph::rename(Value value, std::string name) {
  require_own(value, "the renamed value");
  Node& node = nodes_[static_cast<std::size_t>(value.node_id())];
  CONCORD_CHECK(!node.variable, ArgumentError, "the variable '{}' keeps its name", node.name);
  names_.erase(node.name);
  node.name = unique_name(std::move(name), node.outputs.size());
  names_.emplace(node.name, value.node_id());
}

std::string_view description_of(VariableRole role) {
  switch (role) {
    case VariableRole::own: return "a variable of the program";
    case VariableRole::parameter: return "a module's parameter";
    case VariableRole::optimizer: return "a state of the training";
    case VariableRole::average: return "the average of a parameter";
    case VariableRole::random: return "the state of the random stream";
    case VariableRole::transient: return "data of a run";
  }
  return "";
}

std::string Graph::free_name(std::string wanted, VariableRole role, std::string_view of) const {
  for (;; wanted += '\'') {
    const auto found = names_.find(wanted);
    if (found == names_.end()) return wanted;
    const VariablePtr& holder = node(found->second).variable;
    if (!holder || (holder->role == role && holder->of == of)) return wanted;
  }
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
    random_state_ =
        std::make_shared<Variable>(kRandomState, TensorSpec{DType::i32, Shape{4}},
                                   Initializer{Initializer::Kind::seed, 0, 0}, false, Tensor{}, VariableRole::random);
  }
  return variable(random_state_);
}

std::uint32_t Graph::purpose(std::string_view name) { return philox_purpose(name); }

std::string Graph::scoped(std::string_view name, char separator) const {
  std::string path;
  for (const std::string& scope : scopes_) path += scope + separator;
  return path.append(name);
}

std::string Graph::module_path() const {
  std::string path;
  for (const std::string& scope : scopes_) path += (path.empty() ? "" : ".") + scope;
  return path;
}

bool Graph::is_taken(const std::string& name, std::size_t outputs) {
  if (const Value holder = find(name); holder && holder.name() == name) return true;
  for (std::size_t k = 1; k < outputs; ++k) {
    if (names_.contains(fmt::format("{}:{}", name, k))) return true;
  }
  return false;
}

std::string Graph::unique_name(std::string name) { return unique_name(std::move(name), 1); }

std::string Graph::unique_name(std::string name, std::size_t outputs) {
  if (!is_taken(name, outputs)) return name;
  int& next = next_suffix_[name];
  std::string candidate;
  do {
    candidate = fmt::format("{}_{}", name, ++next);
  } while (is_taken(candidate, outputs));
  return candidate;
}

Value Graph::append(Node node) {
  const Exclusive::Use use(use_, [] { return "a graph"; });
  const auto id = static_cast<std::int32_t>(nodes_.size());
  names_.emplace(node.name, id);
  node.pass = pass_;
  node.gradient_of = gradient_of_;
  node.module = module_path();
  nodes_.push_back(std::move(node));
  return {this, id, 0};
}

Scope::Scope(Graph& graph, std::string name) : graph_(graph) {
  CONCORD_CHECK(!name.empty() && is_utf8(name), ArgumentError,
                "a module or scope inside '{}' is named '{}'; a name needs at least one character, in UTF-8",
                graph.module_path(), printable(name));
  graph_.scopes_.push_back(std::move(name));
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
