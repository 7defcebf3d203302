// Expansion: the bodies of local functions for each call, and the names of the parameters. Both stay the same from
// trace to trace, so a parameter is known by its place in memory. Internal to the room.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_set>
#include <vector>

#include "concord/onnx/wire.hpp"

namespace concord::onnx {

class Expansion {
 public:
  /// Names the parameters in the order of the file, those of a graph before those of branches and functions in it.
  /// `model` outlives this object and stays as it is.
  explicit Expansion(const Model& model);
  Expansion(const Expansion&) = delete;
  Expansion& operator=(const Expansion&) = delete;

  /// The nodes of a function with the attributes of the node that calls it. A call in such nodes has nodes of its own.
  [[nodiscard]] const std::vector<NodeDef>& body(const FunctionDef& function, const NodeDef& call);
  /// The name of a parameter: `wanted`, or the first of "wanted_1", "wanted_2", … that no other has.
  [[nodiscard]] const std::string& name_of(const TensorProto& weight, const std::string& wanted);

 private:
  void name_all(const std::vector<NodeDef>& nodes, const std::string& prefix, std::size_t depth);
  void name_all(const GraphDef& graph, const std::string& prefix, std::size_t depth);

  const Model& model_;
  std::map<const NodeDef*, std::vector<NodeDef>> bodies_ = {};
  std::map<const TensorProto*, std::string> names_ = {};
  std::unordered_set<std::string> taken_ = {};
  std::size_t named_nodes_ = 0;  // of functions
};

constexpr std::size_t kDeepestFunction = 32;    // functions within each other
constexpr std::size_t kMostExpanded = 1 << 18;  // nodes of all calls of functions

/// The local function that a node calls, or null.
[[nodiscard]] const FunctionDef* function_of(const Model& model, const NodeDef& node);
/// What the names of parameters in the body of a function begin with.
[[nodiscard]] std::string prefix_of(const std::string& outer, const FunctionDef& function, const NodeDef& call);
/// Whether an initialiser is a parameter: a float tensor, but no scalar, because files have numbers such as the epsilon
/// of a norm as scalars.
[[nodiscard]] bool is_parameter(const TensorProto& initializer);
/// The float tensor of a Constant node, which is a parameter as an initialiser is; null for other nodes.
[[nodiscard]] const TensorProto* constant_weight(const NodeDef& node);

}  // namespace concord::onnx
