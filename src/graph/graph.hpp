// Graph and Value: what tracing a network builds. A graph holds no device and no values, only what is to be
// computed; compile/ turns it into a Program.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "concord/core/exclusive.hpp"
#include "concord/core/export.hpp"
#include "concord/core/tensor.hpp"

namespace CONCORD_PUBLIC concord {

class Graph;
class Operator;
struct Node;

/// Where a graph is, for the values that outlive it. Never freed, but used again for later graphs.
struct GraphPlace {
  std::atomic<Graph*> graph = nullptr;
  std::atomic<std::uint32_t> generation = 0;  // of the graph that is there now
};

/// A named, shaped, typed edge of a graph. A small handle; valid as long as its graph: the use of an empty value, or of
/// one whose graph is gone, throws ArgumentError. The functions of ops/ (relu, conv2d, matmul, …) take and return Values
/// and add nodes to their graph.
class Value {
 public:
  Value() = default;
  /// Output `output` of a node of the graph, which may be null: an empty value.
  Value(Graph* graph, std::int32_t node, std::int32_t output);

  /// Whether it is a value at all; of a graph that is gone, too.
  [[nodiscard]] explicit operator bool() const { return place_ != nullptr; }
  [[nodiscard]] Graph& graph() const {
    Graph* const graph = place_ == nullptr ? nullptr : place_->graph.load(std::memory_order_relaxed);
    if (graph == nullptr || place_->generation.load(std::memory_order_relaxed) != generation_) refuse();
    return *graph;
  }
  [[nodiscard]] const Node& node() const;
  [[nodiscard]] std::int32_t node_id() const { return node_; }
  [[nodiscard]] std::int32_t output() const { return output_; }
  [[nodiscard]] const TensorSpec& spec() const;
  [[nodiscard]] const Shape& shape() const { return spec().shape; }
  [[nodiscard]] DType dtype() const { return spec().dtype; }
  /// Unique in its graph: "conv1/conv2d", "conv1.weight", "conv1/conv2d:1" for a second output.
  [[nodiscard]] std::string name() const;

  friend bool operator==(const Value&, const Value&) = default;
  friend auto operator<=>(const Value&, const Value&) = default;

 private:
  [[noreturn]] void refuse() const;

  const GraphPlace* place_ = nullptr;
  std::uint32_t generation_ = 0;
  std::int32_t node_ = -1;
  std::int32_t output_ = 0;
};

/// How a variable gets its first value; a function of (seed, name, index) alone, so equal on every device.
struct Initializer {
  enum class Kind : std::uint8_t { constant, uniform, normal, seed };
  Kind kind = Kind::constant;
  float a = 0;                                  // constant: the value; uniform: low; normal: mean
  float b = 0;                                  // uniform: high; normal: standard deviation
  std::int64_t zeros_begin = 0, zeros_end = 0;  // elements (row-major) that begin with 0 instead
  // seed: i32 [4] = two words of 24 bits of the seed, then zeros (whole numbers up to 2^24 are exact in float)
};

/// What a variable is for. Whoever makes it says so; its name says nothing about it.
enum class VariableRole : std::uint8_t {
  own,        // made by a user's program; variables of one name in several graphs are one
  parameter,  // of a module: weights, running statistics
  optimizer,  // moments, counters, what a training counts
  average,    // follows a parameter
  random,     // the state of the random stream
  transient   // data and counters of an evaluation: no part of a training's state, not in a checkpoint
};
/// "a module's parameter", "a state of the optimizer", …
[[nodiscard]] std::string_view description_of(VariableRole role);

/// What persists between runs of a program: a weight, an optimizer's moment, a running mean, a step counter.
/// Shared by the modules that own it and the graphs that use it; its name is its identity on a device and in a file.
struct Variable {
  std::string name;
  TensorSpec spec;
  Initializer init;
  bool trainable = false;
  Tensor value = {};  // when not empty, the first value instead of `init`
  VariableRole role = VariableRole::own;
  std::string of = {};  // the parameter that a state or an average belongs to, by name
};
using VariablePtr = std::shared_ptr<Variable>;

/// The name of the variable of role `random`.
inline constexpr const char* kRandomState = "random.state";

/// The part of a training step that a node belongs to.
enum class Pass : std::uint8_t { forward, gradient, update };

/// A node: an operator applied to values; or an input or a variable, which have no operator.
struct Node {
  std::shared_ptr<const Operator> op;  // null for inputs and variables
  VariablePtr variable;                // set for variables
  std::string name;
  std::vector<Value> inputs;
  std::vector<TensorSpec> outputs;
  Pass pass = Pass::forward;
  std::string module = {};  // the path of the module that added it: "layer1.0.conv1"
};

/// `variable` takes `value` at the end of a run.
struct Assignment {
  Value variable;
  Value value;
};

/// Nodes in the order they were added; every node's inputs come before it.
class Graph {
 public:
  Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph();

  /// A value the user supplies before each run.
  Value input(std::string name, TensorSpec spec);
  /// The node of a variable; the same node each time. Throws ShapeError when another variable or an input has its
  /// name. An operator's node of that name gets another one.
  Value variable(const VariablePtr& variable);
  /// Adds a node. Checks types and shapes through the operator's shape rule; its ShapeError names the node.
  Value add(std::shared_ptr<const Operator> op, std::vector<Value> inputs);
  /// At the end of a run `variable` holds `value` (same spec). A later assignment replaces an earlier one.
  void assign(Value variable, Value value);
  /// Gives the node of `value` a name of the user's choice (made unique).
  void rename(Value value, std::string name);

  /// Throws ArgumentError when there is no such node.
  [[nodiscard]] const Node& node(std::int32_t id) const {
    if (id < 0 || id >= size()) refuse(id);
    return nodes_[static_cast<std::size_t>(id)];
  }
  /// Throws ArgumentError naming `what` ("the loss") unless the value is one of this graph.
  void require_own(const Value& value, std::string_view what) const;
  [[nodiscard]] std::int32_t size() const { return static_cast<std::int32_t>(nodes_.size()); }
  [[nodiscard]] std::span<const Assignment> assignments() const { return assignments_; }
  [[nodiscard]] std::vector<VariablePtr> variables() const;
  /// `wanted`, or where a variable of another purpose has that name, the first of "wanted'", "wanted''", … that none
  /// has: for variables that are named after others, such as the average of a parameter.
  [[nodiscard]] std::string free_name(std::string wanted, VariableRole role, std::string_view of) const;
  /// Trainable variables that this graph's training leaves as they are; modules that are frozen call it.
  void freeze(const VariablePtr& variable) { frozen_.insert(variable.get()); }
  [[nodiscard]] bool is_frozen(const Variable& variable) const { return frozen_.contains(&variable); }
  /// The value with this name, or an empty Value.
  [[nodiscard]] Value find(std::string_view name);

  /// Training behaviour of layers that have two (dropout, batch norm).
  [[nodiscard]] bool training() const { return training_; }
  void set_training(bool training) { training_ = training; }

  /// The state of the random stream, i32 [4]: two seed words, step, 0. Random operators read it. A variable,
  /// "random.state", so that it is saved with a checkpoint; a training step assigns it state + (0, 0, 1, 0).
  Value random_state();
  /// It, where a random operator has asked for it, or an empty Value.
  [[nodiscard]] Value used_random_state() { return random_state_ ? variable(random_state_) : Value{}; }
  /// A purpose number for a random operator: a hash of its name, so that adding a layer leaves the others' numbers.
  [[nodiscard]] static std::uint32_t purpose(std::string_view name);

  /// `name` in the scopes that are open (Scope).
  [[nodiscard]] std::string scoped(std::string_view name, char separator) const;
  /// The scopes that are open: "layer1.0".
  [[nodiscard]] std::string module_path() const;

 private:
  friend class Scope;
  friend class Value;
  friend class PassScope;
  [[noreturn]] void refuse(std::int32_t id) const;
  std::string unique_name(std::string name);
  Value append(Node node);

  GraphPlace& place_;
  Exclusive use_;  // of what changes the graph
  std::deque<Node> nodes_;
  std::unordered_map<std::string, std::int32_t> names_;
  std::unordered_map<std::string, int> next_suffix_;
  VariablePtr random_state_;
  std::unordered_set<const Variable*> frozen_;
  std::vector<Assignment> assignments_;
  std::vector<std::string> scopes_;
  Pass pass_ = Pass::forward;
  bool training_ = true;
};

/// Names what is added to `graph` during its lifetime: nodes "name/…", parameters "name.…". Throws ArgumentError for a
/// name that is empty or not UTF-8.
class Scope {
 public:
  Scope(Graph& graph, std::string name);
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
  ~Scope() { graph_.scopes_.pop_back(); }

 private:
  Graph& graph_;
};

/// What is added to `graph` during its lifetime belongs to this part of the step.
class PassScope {
 public:
  PassScope(Graph& graph, Pass pass) : graph_(graph), before_(graph.pass_) { graph_.pass_ = pass; }
  PassScope(const PassScope&) = delete;
  PassScope& operator=(const PassScope&) = delete;
  ~PassScope() { graph_.pass_ = before_; }

 private:
  Graph& graph_;
  Pass before_;
};

}  // namespace concord
