// Operand: what a name of the file stands for while it is traced, and who knows its value. Internal to the room.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "concord/graph/graph.hpp"
#include "concord/onnx/host_tensor.hpp"
#include "concord/onnx/wire.hpp"

namespace concord::onnx {

/// What a name stands for: a value of the graph, numbers that are known on the host, or both.
struct Operand {
  ElementType type = ElementType::undefined;
  Dims dims = {};
  Value value = {};                                  // may be empty until it is needed
  std::shared_ptr<const HostTensor> host = nullptr;  // null: not known
  /// A float initialiser that is not read yet.
  const TensorProto* weight = nullptr;
  std::string name = {};      // of the weight
  bool is_statistic = false;  // a weight that follows the batches of a training, and has no gradient
  /// Whether the numbers follow from shapes and constants alone, and not from parameters.
  bool fixed = false;
  /// Makes `value` of numbers that follow from parameters, so that these get gradients.
  std::function<Value()> make_value = {};
  /// The operator that does not compute these numbers while tracing, though all that it needs is known; or empty.
  std::string not_computed_by = {};
  int deferred = 0;  // nodes whose values `make_value` makes one within the other, this one included
};
using OperandPtr = std::shared_ptr<Operand>;

[[nodiscard]] OperandPtr operand_of(HostTensor host);
[[nodiscard]] OperandPtr operand_of(Value value, ElementType type);

/// What a node may ask of the trace that it is part of.
class Tracer {
 public:
  virtual ~Tracer() = default;
  [[nodiscard]] virtual Graph& graph() const = 0;
  /// The operand's value in the graph.
  [[nodiscard]] virtual Value value_of(Operand& operand) = 0;
  /// The operand's numbers, or null if they are not known.
  [[nodiscard]] virtual const HostTensor* host_of(Operand& operand) = 0;
  /// The value of a name where the node is that is being run. Throws FormatError if there is none.
  [[nodiscard]] virtual Value named_value(const std::string& name) = 0;
  /// How often the file reads a value under the names that it has by now: in nodes, in branches, as an output. 0 for
  /// values between the nodes.
  [[nodiscard]] virtual int readers_of(const Value& value) const = 0;
  /// Runs a branch of the node that is being run, and returns its outputs.
  [[nodiscard]] virtual std::vector<OperandPtr> run_branch(const GraphDef& branch) = 0;
};

}  // namespace concord::onnx
