// with_recomputation(): copies nodes and inserts the copies before the nodes that read their results again.
#include <algorithm>

#include "concord/compile/recompute.hpp"

namespace concord {
namespace {

class Rewriter {
 public:
  Rewriter(const Lowered& program, const LastReads& last_reads)
      : program_(program),
        last_reads_(last_reads),
        producer_(program.values.size(), -1),
        is_read_(program.values.size(), false),
        again_(program.values.size(), -1) {
    result_.program.values = program.values;
    result_.program.assignments = program.assignments;
    for (std::size_t n = 0; n < program.nodes.size(); ++n) {
      for (const ValueId id : program.nodes[n].outputs) producer_[index(id)] = static_cast<std::int32_t>(n);
      if (program.nodes[n].is_alias()) continue;
      for (const ValueId id : program.nodes[n].inputs) is_read_[index(program.root(id))] = true;
    }
    for (std::size_t v = 0; v < program.values.size(); ++v) {
      if (program.values[v].keep) is_read_[index(program.root(static_cast<ValueId>(v)))] = true;
    }
    for (const LoweredAssignment& assignment : program.assignments) {
      is_read_[index(program.root(assignment.value))] = true;
    }
  }

  RecomputingProgram run() {
    for (std::int32_t n = 0; n < static_cast<std::int32_t>(program_.nodes.size()); ++n) {
      LoweredNode node = program_.nodes[index(n)];
      if (moves(node, n)) continue;
      for (ValueId& id : node.inputs) id = read(id, n);
      add(std::move(node), n);
    }
    return std::move(result_);
  }

 private:
  static std::size_t index(std::int32_t id) { return static_cast<std::size_t>(id); }

  [[nodiscard]] bool is_over(ValueId id, std::int32_t position) const {
    return position > last_reads_[index(program_.root(id))];
  }

  // Nothing reads a result of the node before it is computed again, so that once is enough; or a view of what is over.
  [[nodiscard]] bool moves(const LoweredNode& node, std::int32_t position) const {
    if (node.is_alias()) return is_over(node.inputs[0], position);
    const auto is_later = [&](ValueId id) { return last_reads_[index(id)] == position; };
    return std::ranges::any_of(node.outputs, is_later) &&
           std::ranges::all_of(node.outputs, [&](ValueId id) { return is_later(id) || !is_read_[index(id)]; });
  }

  void add(LoweredNode node, std::int32_t position) {
    result_.program.nodes.push_back(std::move(node));
    result_.positions.push_back(position);
  }

  ValueId read(ValueId id, std::int32_t position) {
    if (!is_over(id, position)) return id;
    if (again_[index(id)] < 0) compute_again(producer_[index(id)], position);
    return again_[index(id)];
  }

  void compute_again(std::int32_t producer, std::int32_t position) {
    LoweredNode node = program_.nodes[index(producer)];
    node.again = !moves(node, producer);
    if (node.again) node.name = "recompute/" + node.name;
    for (ValueId& id : node.inputs) id = read(id, position);
    for (ValueId& id : node.outputs) {
      again_[index(id)] = node.again ? second_of(id) : id;
      id = again_[index(id)];
      LoweredValue& value = result_.program.value(id);
      if (value.alias_of >= 0) value.alias_of = node.inputs[0];
      if (value.reorder_of >= 0) value.reorder_of = node.inputs[0];
    }
    add(std::move(node), position);
  }

  ValueId second_of(ValueId id) {
    LoweredValue value = program_.value(id);
    value.name = "recompute/" + value.name;
    value.keep = false;
    result_.program.values.push_back(std::move(value));
    return static_cast<ValueId>(result_.program.values.size() - 1);
  }

  const Lowered& program_;
  const LastReads& last_reads_;
  std::vector<std::int32_t> producer_;
  std::vector<bool> is_read_;  // by root value: by a node, or after the run
  std::vector<ValueId> again_;
  RecomputingProgram result_;
};

}  // namespace

RecomputingProgram with_recomputation(const Lowered& program, const LastReads& last_reads) {
  return Rewriter(program, last_reads).run();
}

}  // namespace concord
