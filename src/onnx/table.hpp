// Table: the operators of ONNX that Concord has: domain, name and version of the operator set → function. Each file of
// operators/ enters its own. Internal to the room.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "concord/onnx/call.hpp"

namespace concord::onnx {

/// Computes the results of a node from its operands.
using OperatorFunction = void (*)(Call& call);
/// Returns why a node is not supported, or an empty text. It sees the node alone, not its operands.
using NodeCheck = std::string (*)(const NodeDef& node);

struct OperatorEntry {
  std::int64_t since = 1;
  OperatorFunction run = nullptr;
  /// Positions of operands whose numbers must be known: they decide shapes.
  std::vector<std::size_t> known = {};
  bool host = false;  // `run` has a form for Call::on_host()
  NodeCheck check = nullptr;
};

class Table {
 public:
  /// The operators of all files.
  [[nodiscard]] static const Table& all();

  void add(const std::string& name, OperatorEntry entry) { add("", name, std::move(entry)); }
  void add(const std::string& domain, const std::string& name, OperatorEntry entry);
  /// The entry of the greatest `since` up to `opset`, or null.
  [[nodiscard]] const OperatorEntry* find(std::string_view domain, std::string_view name, std::int64_t opset) const;
  /// Domain and name of every operator, with the version of its first entry.
  [[nodiscard]] std::map<std::pair<std::string, std::string>, std::int64_t> operators() const;

  static constexpr std::int64_t kNewestOpset = 22;

 private:
  std::map<std::pair<std::string, std::string>, std::vector<OperatorEntry>, std::less<>> entries_;
};

// One for each file of operators/.
void add_activations(Table& table);
void add_arithmetic(Table& table);
void add_comparisons(Table& table);
void add_constants(Table& table);
void add_control(Table& table);
void add_convolutions(Table& table);
void add_detection(Table& table);
void add_functions(Table& table);
void add_indexing(Table& table);
void add_losses(Table& table);
void add_norms(Table& table);
void add_pools(Table& table);
void add_products(Table& table);
void add_random(Table& table);
void add_recurrent(Table& table);
void add_reductions(Table& table);
void add_resizing(Table& table);
void add_scatters(Table& table);
void add_selections(Table& table);
void add_signals(Table& table);
void add_slices(Table& table);
void add_softmaxes(Table& table);
void add_training(Table& table);
void add_views(Table& table);

}  // namespace concord::onnx
