// with_recomputation(): copies of nodes before what reads their results again.
#include "concord/compile/recompute.hpp"

namespace concord {
namespace {

class Rewriter {
 public:
  Rewriter(const Lowered& program, const LastReads& last_reads)
      : program_(program),
        last_reads_(last_reads),
        producer_(program.values.size(), -1),
        again_(program.values.size(), -1) {
    result_.program.values = program.values;
    result_.program.assignments = program.assignments;
    for (std::size_t n = 0; n < program.nodes.size(); ++n) {
      for (const ValueId id : program.nodes[n].outputs) producer_[index(id)] = static_cast<std::int32_t>(n);
    }
  }

  RecomputingProgram run() {
    for (std::int32_t n = 0; n < static_cast<std::int32_t>(program_.nodes.size()); ++n) {
      LoweredNode node = program_.nodes[index(n)];
      // What reads such an alias has one of the second computation.
      if (node.op && node.op->is_alias() && is_over(node.inputs[0], n)) continue;
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
    for (ValueId& id : node.inputs) id = read(id, position);
    node.name = "recompute/" + node.name;
    node.again = true;
    for (ValueId& id : node.outputs) {
      LoweredValue value = program_.value(id);
      value.name = "recompute/" + value.name;
      value.keep = false;
      if (value.alias_of >= 0) value.alias_of = node.inputs[0];
      result_.program.values.push_back(std::move(value));
      again_[index(id)] = static_cast<ValueId>(result_.program.values.size() - 1);
      id = again_[index(id)];
    }
    add(std::move(node), position);
  }

  const Lowered& program_;
  const LastReads& last_reads_;
  std::vector<std::int32_t> producer_;
  std::vector<ValueId> again_;
  RecomputingProgram result_;
};

}  // namespace

RecomputingProgram with_recomputation(const Lowered& program, const LastReads& last_reads) {
  return Rewriter(program, last_reads).run();
}

}  // namespace concord
