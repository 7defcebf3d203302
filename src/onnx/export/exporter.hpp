// Exporter: walks a traced graph and writes its nodes with the rules of the operator families. A family's file has its
// rules; rules.cpp lists them. Internal to the export.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <typeindex>
#include <unordered_map>
#include <vector>

#include "concord/graph/operator.hpp"
#include "concord/onnx/export/graph_writer.hpp"
#include "concord/onnx/export/sizes.hpp"

namespace concord::onnx {

class Exporter;

/// Why an operator cannot be written. The exporter collects them.
struct Refusal {
  std::string reason;
};

/// One node while it is written: what a rule sees.
class NodeExport {
 public:
  NodeExport(Exporter& exporter, const Node& node, std::int32_t id);

  [[nodiscard]] const Node& node() const { return node_; }
  [[nodiscard]] Value output(std::size_t k) const;
  template <class Op>
  [[nodiscard]] const Op& op() const {
    return static_cast<const Op&>(*node_.op);
  }
  [[nodiscard]] int opset() const { return writer().opset(); }
  [[nodiscard]] GraphWriter& writer() const;
  /// The name of an input, or of any value that comes before this node.
  [[nodiscard]] const std::string& in(std::size_t i) const { return name_of(node_.inputs[i]); }
  [[nodiscard]] const std::string& name_of(const Value& value) const;
  [[nodiscard]] const Sizes& sizes_of(const Value& value) const;
  [[nodiscard]] const Sizes& in_sizes(std::size_t i) const { return sizes_of(node_.inputs[i]); }
  [[nodiscard]] const Sizes& out_sizes(std::size_t k = 0) const;
  /// Whether something reads output k.
  [[nodiscard]] bool is_used(std::size_t k) const;
  /// The number of readers of a value.
  [[nodiscard]] int uses_of(const Value& value) const;

  /// Adds a node of ONNX and returns the name of its output.
  std::string add(std::string op, Names inputs, Attributes attributes = {});
  Names add_many(std::string op, Names inputs, Attributes attributes, std::size_t outputs);
  /// Says that output k is what `name` is.
  void bind(std::size_t k, const std::string& name);
  [[noreturn]] static void refuse(std::string reason) { throw Refusal{std::move(reason)}; }

  // What many rules need.
  std::string cast(const std::string& x, ElementType type);
  std::string reshape(const std::string& x, const Sizes& from, const Sizes& to);
  std::string transpose(const std::string& x, std::vector<std::int64_t> order);
  std::string unsqueeze(const std::string& x, std::vector<std::int64_t> axes);
  std::string squeeze(const std::string& x, std::vector<std::int64_t> axes);
  /// x[start:stop] along one axis.
  std::string slice(const std::string& x, std::int64_t axis, std::int64_t start, std::int64_t stop);
  std::string concat(Names parts, std::int64_t axis);
  /// "ReduceSum", "ReduceMean", "ReduceMax" and so on with the axes kept at size 1.
  std::string reduce(const std::string& op, const std::string& x, std::vector<std::int64_t> axes);
  /// Zeros of these sizes.
  std::string filled(const Sizes& sizes, float value);
  std::string add_to(const std::string& a, const std::string& b) { return add("Add", {a, b}); }
  std::string subtract(const std::string& a, const std::string& b) { return add("Sub", {a, b}); }
  std::string multiply(const std::string& a, const std::string& b) { return add("Mul", {a, b}); }
  std::string multiply(const std::string& a, float b) { return add("Mul", {a, writer().number(b)}); }
  std::string divide(const std::string& a, const std::string& b) { return add("Div", {a, b}); }

 private:
  Exporter& exporter_;
  const Node& node_;
  std::int32_t id_;
  std::size_t first_node_;                      // of those that this rule adds
  std::map<std::string, std::string> renamed_;  // results of them, and the output that each has become
};

using Rule = std::function<void(NodeExport&)>;
using Rules = std::unordered_map<std::type_index, Rule>;
/// The rules of all families.
[[nodiscard]] const Rules& all_rules();

struct NamedOutput {
  std::string name;
  Value value;
};

class Exporter {
 public:
  /// The names of outputs and inputs are taken first; those of other values may get a number.
  Exporter(Graph& graph, GraphSizes sizes, int opset);

  /// Writes the part of the graph that the outputs need. `fed` are the variables that are inputs with a default;
  /// `value_of` gives the values of variables. Throws NotSupported with all nodes that cannot be written.
  [[nodiscard]] GraphDef write(const std::vector<NamedOutput>& outputs, const std::vector<VariablePtr>& fed,
                               const std::function<Tensor(const Variable&)>& value_of, const std::string& free_batch);

 private:
  friend class NodeExport;
  [[nodiscard]] const GraphSizes::Output& output_of(const Value& value) const;
  [[nodiscard]] ValueInfo info_of(const std::string& name, const Value& value, const std::string& free_batch) const;
  void find_needed(const std::vector<NamedOutput>& outputs);
  /// Returns the reason if the node cannot be written.
  std::string write_node(const Node& node, std::int32_t id);

  Graph& graph_;
  GraphSizes sizes_;
  GraphWriter writer_;
  std::map<Value, std::string> names_;
  std::map<Value, int> uses_;
  std::vector<bool> needed_;
};

}  // namespace concord::onnx
