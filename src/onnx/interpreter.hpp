// Interpreter: runs the nodes of a file once, for one graph. Internal to the room.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>

#include "concord/onnx/expansion.hpp"
#include "concord/onnx/operand.hpp"
#include "concord/onnx/table.hpp"

namespace concord::onnx {

/// The names of a graph, of a branch in it or of the body of a function.
struct NameScope {
  const NameScope* outer = nullptr;  // where a branch finds other names
  std::unordered_map<std::string, OperandPtr> names = {};
  std::string prefix = {};  // of the weights of a function's body
  const std::vector<OpsetId>* opsets = nullptr;
  std::unordered_map<std::string, int> readers = {};  // how often the nodes here read a name
  [[nodiscard]] OperandPtr find(const std::string& name) const;
};

class Interpreter final : public Tracer {
 public:
  /// Makes the value of an operand that is a weight.
  using MakeParameter = std::function<Value(const Operand& operand)>;

  /// `expansion` is that of the model.
  Interpreter(Graph& graph, const Model& model, Expansion& expansion, std::string file, MakeParameter parameter)
      : graph_(graph), model_(model), expansion_(expansion), file_(std::move(file)), parameter_(std::move(parameter)) {}

  [[nodiscard]] Graph& graph() const override { return graph_; }
  /// Runs the nodes of a graph or branch; their results are entered into `scope`.
  void run(const GraphDef& def, NameScope& scope);
  [[nodiscard]] std::vector<OperandPtr> run_branch(const GraphDef& branch) override;
  [[nodiscard]] Value named_value(const std::string& name) override;
  [[nodiscard]] Value value_of(Operand& operand) override;
  [[nodiscard]] int readers_of(const Value& value) const override;
  [[nodiscard]] const HostTensor* host_of(Operand& operand) override;
  /// "net.onnx: node 'conv1' (Conv): …" around the errors of `action`.
  void with_place(const NodeDef& node, const std::function<void()>& action) const;

 private:
  void run_nodes(const std::vector<NodeDef>& nodes, NameScope& scope);
  void run_node(const NodeDef& node, NameScope& scope);
  void run_function(const FunctionDef& function, const NodeDef& node, const std::vector<OperandPtr>& inputs,
                    NameScope& scope);
  /// Notes at the results who is to blame if their numbers are needed.
  void note_not_computed(const NodeDef& node, const std::vector<OperandPtr>& inputs,
                         const std::vector<OperandPtr>& results);
  void defer(const NodeDef& node, const OperatorEntry& entry, const std::vector<OperandPtr>& inputs, Call& call);
  void enter(const NodeDef& node, const std::vector<OperandPtr>& results, std::int32_t first_new, NameScope& scope);
  void enter_initializers(const GraphDef& def, NameScope& scope);
  [[nodiscard]] OperandPtr weight_operand(const TensorProto& weight, const std::string& wanted_name);

  Graph& graph_;
  const Model& model_;
  Expansion& expansion_;
  std::string file_;
  MakeParameter parameter_;
  NameScope* scope_ = nullptr;    // of the node that is being run
  std::map<Value, int> readers_;  // of values that have a name
  std::size_t depth_ = 0;         // functions within each other
  std::size_t expanded_ = 0;      // nodes of all calls of functions
};

/// The version of a domain's operator set; 0 if it is not imported.
[[nodiscard]] std::int64_t opset_of(const std::vector<OpsetId>& opsets, std::string_view domain);

}  // namespace concord::onnx
