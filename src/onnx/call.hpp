// Call: one node while it is traced, as the functions of the operators see it: operands, attributes, results. What a
// name of the file stands for is an Operand. Internal to the room.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "concord/onnx/operand.hpp"

namespace concord::onnx {

class Call {
 public:
  /// `on_host`: results are to be computed with the numbers of the operands, which are all known.
  Call(Tracer& tracer, const NodeDef& node, std::int64_t opset, std::vector<OperandPtr> inputs, bool on_host);

  [[nodiscard]] const NodeDef& node() const { return node_; }
  [[nodiscard]] Tracer& tracer() const { return tracer_; }
  [[nodiscard]] Graph& graph() const;
  /// The version of the operator set of the node's domain.
  [[nodiscard]] std::int64_t opset() const { return opset_; }
  [[nodiscard]] bool on_host() const { return on_host_; }
  /// Whether a result of these sizes is to be computed on the host; a large one is computed in the graph.
  [[nodiscard]] bool on_host(const Dims& result) const { return on_host_ && has_at_most(result, kMostOnHost); }

  // Operands. Those that are not there have no type and no value.
  [[nodiscard]] std::size_t inputs() const { return inputs_.size(); }
  [[nodiscard]] bool has(std::size_t i) const { return i < inputs_.size() && inputs_[i] != nullptr; }
  [[nodiscard]] const OperandPtr& operand(std::size_t i) const;
  [[nodiscard]] ElementType type(std::size_t i) const { return operand(i)->type; }
  [[nodiscard]] const Dims& dims(std::size_t i) const { return operand(i)->dims; }
  [[nodiscard]] std::size_t rank(std::size_t i) const { return dims(i).size(); }
  [[nodiscard]] bool is_empty(std::size_t i) const { return elements_of(dims(i)) == 0; }
  /// The operand in the graph, with dtype_of its type.
  [[nodiscard]] Value value(std::size_t i) const;
  /// The operand in the graph as f32.
  [[nodiscard]] Value number_value(std::size_t i) const;
  [[nodiscard]] bool is_known(std::size_t i) const;
  /// Whether the operand is a single number that follows from no parameter.
  [[nodiscard]] bool is_constant_number(std::size_t i) const;
  /// The numbers of an operand. Throws NotSupported if they are not known.
  [[nodiscard]] const HostTensor& host(std::size_t i) const;
  [[nodiscard]] Dims integers(std::size_t i) const;
  [[nodiscard]] std::int64_t integer(std::size_t i) const;
  [[nodiscard]] double number(std::size_t i) const;

  /// The value that a name of the file stands for here, as f32; for attributes that are names.
  [[nodiscard]] Value named_value(const std::string& name) const;
  /// From now on, operand `i` is seen with these dimensions.
  void reshape_operand(std::size_t i, Dims dims);

  // Attributes, with what they are if the node lacks them.
  [[nodiscard]] const Attribute* find(std::string_view name) const { return node_.find(name); }
  [[nodiscard]] std::int64_t integer(std::string_view name, std::int64_t otherwise) const;
  [[nodiscard]] float number(std::string_view name, float otherwise) const;
  [[nodiscard]] std::string text(std::string_view name, std::string_view otherwise) const;
  [[nodiscard]] std::optional<Dims> integers(std::string_view name) const;
  [[nodiscard]] std::optional<std::vector<float>> numbers(std::string_view name) const;
  [[nodiscard]] std::vector<std::string> texts(std::string_view name) const;
  /// Throws FormatError if the node lacks it.
  [[nodiscard]] std::int64_t required_integer(std::string_view name) const;
  [[nodiscard]] Dims required_integers(std::string_view name) const;

  // Results.
  [[nodiscard]] std::size_t outputs() const { return node_.outputs.size(); }
  [[nodiscard]] bool wants(std::size_t i) const { return i < node_.outputs.size() && !node_.outputs[i].empty(); }
  void set(std::size_t i, HostTensor host);
  /// Casts the value to dtype_of(type) if it has another type.
  void set(std::size_t i, Value value, ElementType type);
  void set(std::size_t i, OperandPtr operand);
  /// A result without elements.
  void set_empty(std::size_t i, ElementType type, Dims dims) { set(i, HostTensor(type, std::move(dims))); }
  [[nodiscard]] std::vector<OperandPtr>& results() { return results_; }

 private:
  [[nodiscard]] const Attribute* typed(std::string_view name, AttributeType type) const;

  Tracer& tracer_;
  const NodeDef& node_;
  std::int64_t opset_;
  std::vector<OperandPtr> inputs_;
  bool on_host_;
  std::vector<OperandPtr> results_;
};

[[nodiscard]] inline Dims dims_of(const Value& value) {
  return {value.shape().dims().begin(), value.shape().dims().end()};
}

}  // namespace concord::onnx
