// GraphWriter: collects the nodes and initialisers of an ONNX graph, with unique names. It knows nothing of Concord's
// operators. Internal to the export.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "concord/core/tensor.hpp"
#include "concord/onnx/export/sizes.hpp"
#include "concord/onnx/wire.hpp"

namespace concord::onnx {

using Names = std::vector<std::string>;
using Attributes = std::vector<Attribute>;

[[nodiscard]] Attribute whole(std::string name, std::int64_t value);
[[nodiscard]] Attribute wholes(std::string name, std::vector<std::int64_t> values);
[[nodiscard]] Attribute real(std::string name, float value);
[[nodiscard]] Attribute text(std::string name, std::string value);

[[nodiscard]] ElementType element_of(DType type);

class GraphWriter {
 public:
  explicit GraphWriter(int opset) : opset_(opset) {}

  [[nodiscard]] int opset() const { return opset_; }
  /// Takes a name, or the first of "name", "name_1", "name_2", … that is free.
  std::string unique(std::string name);
  [[nodiscard]] bool is_taken(const std::string& name) const { return taken_.contains(name); }

  /// Adds a node; what it computes gets unique names that begin with `prefix`.
  Names add(std::string op, Names inputs, Attributes attributes, std::size_t outputs, const std::string& prefix);
  /// Renames an output of one of the nodes from `first_node` on. Returns false if none of them computes it.
  bool rename(const std::string& from, const std::string& to, std::size_t first_node);
  [[nodiscard]] std::size_t nodes() const { return graph_.nodes.size(); }

  // Constants; equal ones are shared.
  std::string number(float value);
  std::string integer(std::int64_t value);                        // of rank 0
  std::string integers(const std::vector<std::int64_t>& values);  // of rank 1
  std::string tensor(const Shape& shape, std::span<const float> values);
  void initializer(const std::string& name, const Tensor& value);

  /// Sizes as a tensor of integers, computed from the free batch where one is.
  std::string sizes(const Sizes& sizes);
  /// The batch as a tensor of one integer. `free_batch_of` has named the input that has it.
  std::string batch();
  void free_batch_of(std::string input) { batch_input_ = std::move(input); }
  /// What Reshape takes to make `to` of `from`.
  std::string reshape_target(const Sizes& from, const Sizes& to);

  /// Removes what no output needs, and returns the graph.
  [[nodiscard]] GraphDef finish(std::vector<ValueInfo> inputs, std::vector<ValueInfo> outputs, std::string name) &&;

 private:
  std::string constant(const char* kind, ElementType type, std::vector<std::int64_t> dims,
                       std::span<const std::byte> bytes);

  int opset_;
  GraphDef graph_;
  std::unordered_set<std::string> taken_;
  std::map<std::string, int> next_suffix_;
  std::map<std::string, std::string> constants_;  // by content
  std::string batch_input_, batch_;
};

}  // namespace concord::onnx
