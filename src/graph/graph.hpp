// Graph and Value: the result of tracing a network. A graph describes a computation. It has no device and no numbers;
// compile/ turns it into a Program.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <typeindex>
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

/// The address of a graph, which Values use to detect that their graph is gone. Never freed; later graphs reuse it.
struct GraphPlace {
  std::atomic<Graph*> graph = nullptr;
  std::atomic<std::uint32_t> generation = 0;  // of the graph that is here now
};

/// A tensor in a graph, with a name, a type and a shape. A Value is a small handle and is valid as long as its graph.
/// Using an empty Value, or a Value whose graph is gone, throws ArgumentError. The functions of ops/ (relu, conv2d,
/// matmul, …) take Values, add nodes to their graph and return Values.
class Value {
 public:
  Value() = default;
  /// Refers to output `output` of a node. If `graph` is null, the value is empty.
  Value(Graph* graph, std::int32_t node, std::int32_t output);

  /// Returns whether the value is not empty. A value whose graph is gone is not empty.
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
  /// The name, unique in its graph: "conv1/conv2d", "conv1.weight", "conv1/conv2d:1" for a second output.
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

/// How a variable gets its initial value. The value depends only on the seed, the name and the index, so it is equal on
/// every device.
struct Initializer {
  enum class Kind : std::uint8_t { constant, uniform, normal, seed };
  Kind kind = Kind::constant;
  float a = 0;                                  // constant: the value; uniform: low; normal: mean
  float b = 0;                                  // uniform: high; normal: standard deviation
  std::int64_t zeros_begin = 0, zeros_end = 0;  // elements (row-major) that start as 0 instead
  // seed: i32 [4]; two words with 24 bits of the seed each, then zeros (float represents integers up to 2^24 exactly)
};

/// The purpose of a variable, set by the code that makes the variable. The name of a variable does not imply its role.
enum class VariableRole : std::uint8_t {
  own,        // made by a user's program; variables with one name in several graphs are the same
  parameter,  // of a module: weight, running statistics
  optimizer,  // state of the training: moments, counters
  average,    // moving average of a parameter
  random,     // the state of the random stream
  transient   // data and counters of an evaluation; not part of a training's state, not in a checkpoint
};
/// "a module's parameter", "a state of the training", …
[[nodiscard]] std::string_view description_of(VariableRole role);

/// The part of a parameter that one of several ranks has. Dimension `axis` consists of `blocks` equal blocks, and each
/// block of `ranks` equal parts. The rank has its part of each block, one behind the other.
struct Shard {
  int rank = 0, ranks = 1;
  std::size_t axis = 0;
  std::int64_t blocks = 1;  // 3 for query, key and value in one weight
  [[nodiscard]] bool is_whole() const { return ranks == 1; }
  friend bool operator==(const Shard&, const Shard&) = default;
};

/// A tensor that persists between runs of a program: a weight, an optimizer moment, a running mean, a step counter. The
/// modules that own it and the graphs that use it share it. Its name identifies it on a device and in a file.
struct Variable {
  std::string name;
  TensorSpec spec;
  Initializer init;
  bool trainable = false;
  Tensor value = {};  // the initial value; if empty, `init` gives it
  VariableRole role = VariableRole::own;
  std::string of = {};  // name of the parameter that this state or average belongs to
  /// Which part of the variable this is. `spec` is that of the part; `name`, `init` and `value` are those of the whole.
  Shard shard = {};
};
using VariablePtr = std::shared_ptr<Variable>;

/// The name of the variable of role `random`.
inline constexpr const char* kRandomState = "random.state";

/// The part of a training step that a node belongs to.
enum class Pass : std::uint8_t { forward, gradient, update };

/// A node of a graph: an operator applied to values, an input, or a variable. Inputs and variables have no operator.
struct Node {
  std::shared_ptr<const Operator> op;  // null for inputs and variables
  VariablePtr variable;                // set for variables
  std::string name;
  std::vector<Value> inputs;
  std::vector<TensorSpec> outputs;
  Pass pass = Pass::forward;
  std::string module = {};        // the path of the module that added it: "layer1.0.conv1"
  std::int32_t gradient_of = -1;  // of what `gradient` adds: the node whose gradient it computes, if it is for one
  /// Values that its function computes along instead of reading them, such as sigmoid(x) in x·sigmoid(x).
  std::vector<Value> joined = {};
};

/// At the end of a run, `variable` gets `value`.
struct Assignment {
  Value variable;
  Value value;
  /// In a step that is cut in two by an exchange between devices: at the end of the first part (Graph::exchange).
  bool is_early = false;
};

/// The nodes of a computation, in the order in which they were added. The inputs of a node come before it.
class Graph {
 public:
  Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph();

  /// Adds an input: the user writes its value before each run. Throws ArgumentError if the name is taken.
  Value input(std::string name, TensorSpec spec);
  /// Returns the node of a variable, the same node at each call. Throws ShapeError if another variable or an input has
  /// its name. If an operator's node has its name, or has it for a further output, that node is renamed.
  Value variable(const VariablePtr& variable);
  /// Adds a node. The shape rule of the operator checks types and shapes; its ShapeError names the node.
  Value add(std::shared_ptr<const Operator> op, std::vector<Value> inputs);
  /// Sets Node::joined.
  void note_joined(std::int32_t node, std::vector<Value> values);
  /// At the end of a run, `variable` gets `value`, which has the same spec. A later assignment to a variable replaces
  /// an earlier one.
  void assign(Value variable, Value value);
  /// Cuts the run in two parts (RunPart). At the end of the first part, `variable` gets `value`; the second part reads
  /// it. A variable may be assigned in both parts.
  void assign_early(Value variable, Value value);
  /// As assign_early. Between the parts, the host replaces `variable` by its sum over the ranks of a training.
  void exchange(Value variable, Value value);
  /// Renames the node of `value`. If the name is taken, a number is appended.
  void rename(Value value, std::string name);

  /// Throws ArgumentError if there is no such node.
  [[nodiscard]] const Node& node(std::int32_t id) const {
    if (id < 0 || id >= size()) refuse(id);
    return nodes_[static_cast<std::size_t>(id)];
  }
  /// Throws ArgumentError unless `value` belongs to this graph. The message names `what` ("the loss").
  void require_own(const Value& value, std::string_view what) const;
  [[nodiscard]] std::int32_t size() const { return static_cast<std::int32_t>(nodes_.size()); }
  [[nodiscard]] std::span<const Assignment> assignments() const { return assignments_; }
  /// The variables of `exchange`, in the order of the calls.
  [[nodiscard]] std::span<const Value> exchanged() const { return exchanged_; }
  [[nodiscard]] std::vector<VariablePtr> variables() const;
  /// Returns a name for a variable that is named after another, such as the average of a parameter. It is `wanted`, or
  /// the first of "wanted'", "wanted''", … that no variable of another role or parameter has.
  [[nodiscard]] std::string free_name(std::string wanted, VariableRole role, std::string_view of) const;
  /// Excludes a trainable variable from this graph's training. Frozen modules call it.
  void freeze(const VariablePtr& variable) { frozen_.insert(variable.get()); }
  [[nodiscard]] bool is_frozen(const Variable& variable) const { return frozen_.contains(&variable); }
  /// Returns the value with this name, or an empty Value.
  [[nodiscard]] Value find(std::string_view name);

  /// Whether layers such as dropout and batch norm behave as in training (else as in evaluation).
  [[nodiscard]] bool training() const { return training_; }
  void set_training(bool training) { training_ = training; }

  /// The state of the random stream, i32 [4]: two seed words, the step, 0. Random operators read it. It is the variable
  /// "random.state", so checkpoints contain it. A training step adds (0, 0, 1, 0) to it.
  Value random_state();
  /// Returns random_state() if a random operator uses it, else an empty Value.
  [[nodiscard]] Value used_random_state() { return random_state_ ? variable(random_state_) : Value{}; }
  /// Returns the stream number of a random operator: a hash of its name. So a new layer does not change the random
  /// numbers of other layers.
  [[nodiscard]] static std::uint32_t purpose(std::string_view name);

  /// An object that a user of graphs keeps with this graph: one of each type, made at its first use. Modules keep there
  /// which of them are being traced.
  template <class T>
  [[nodiscard]] T& attached() {
    const Exclusive::Use use(use_, [] { return "a graph"; });
    std::shared_ptr<void>& object = attached_[typeid(T)];
    if (!object) object = std::make_shared<T>();
    return *static_cast<T*>(object.get());
  }

  /// Returns `name` with the names of the open scopes in front (see Scope).
  [[nodiscard]] std::string scoped(std::string_view name, char separator) const;
  /// The path of the open scopes: "layer1.0".
  [[nodiscard]] std::string module_path() const;

 private:
  friend class Scope;
  friend class Value;
  friend class PassScope;
  [[noreturn]] void refuse(std::int32_t id) const;
  /// Whether a node with so many outputs cannot have this name: a value has it, or that of one of its further outputs.
  [[nodiscard]] bool is_taken(const std::string& name, std::size_t outputs = 1);
  std::string unique_name(std::string name);
  std::string unique_name(std::string name, std::size_t outputs);
  Value append(Node node);
  void add_assignment(const Assignment& added);

  GraphPlace& place_;
  Exclusive use_;  // while the graph changes
  std::deque<Node> nodes_;
  std::unordered_map<std::string, std::int32_t> names_;
  std::unordered_map<std::string, int> next_suffix_;
  VariablePtr random_state_;
  std::unordered_set<const Variable*> frozen_;
  std::vector<Assignment> assignments_;
  std::vector<Value> exchanged_;
  std::vector<std::string> scopes_;
  Pass pass_ = Pass::forward;
  std::int32_t gradient_of_ = -1;
  bool training_ = true;
  std::unordered_map<std::type_index, std::shared_ptr<void>> attached_;
};

/// During its lifetime, prefixes the names of what is added to `graph`: nodes "name/…", parameters "name.…". Throws
/// ArgumentError if the name is empty or not UTF-8.
class Scope {
 public:
  Scope(Graph& graph, std::string name);
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
  ~Scope() { graph_.scopes_.pop_back(); }

 private:
  Graph& graph_;
};

/// During its lifetime, nodes added to `graph` belong to the given part of the step, and to the gradient of the node
/// `gradient_of`, if there is one.
class PassScope {
 public:
  PassScope(Graph& graph, Pass pass, std::int32_t gradient_of = -1)
      : graph_(graph), before_(graph.pass_), gradient_of_before_(graph.gradient_of_) {
    graph_.pass_ = pass;
    graph_.gradient_of_ = gradient_of;
  }
  PassScope(const PassScope&) = delete;
  PassScope& operator=(const PassScope&) = delete;
  ~PassScope() {
    graph_.pass_ = before_;
    graph_.gradient_of_ = gradient_of_before_;
  }

 private:
  Graph& graph_;
  Pass before_;
  std::int32_t gradient_of_before_;
};

}  // namespace concord
