// The memory plan: lifetimes, in-place sharing, assignments, placement.
#include "concord/compile/plan.hpp"

#include <algorithm>
#include <numeric>

#include "concord/core/check.hpp"

namespace concord {
namespace {

constexpr std::size_t kAlignment = 256;

std::size_t aligned(std::size_t bytes) {
  return (std::max<std::size_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
}

class Planner {
 public:
  Planner(const Lowered& program, bool retains_all) : program_(program), retains_all_(retains_all) {
    plan_.storage.resize(program.values.size());
    for (std::size_t v = 0; v < program.values.size(); ++v) {
      roots_.push_back(static_cast<std::size_t>(program.root(static_cast<ValueId>(v))));
    }
    last_read_.assign(program.values.size(), -1);
    for (std::size_t n = 0; n < program.nodes.size(); ++n) {
      for (const ValueId id : program.nodes[n].inputs) last_read_[root(id)] = static_cast<std::int32_t>(n);
    }
    end_ = static_cast<std::int32_t>(program.nodes.size());
    for (std::size_t v = 0; v < program.values.size(); ++v) {
      if (program.values[v].keep) last_read_[root(static_cast<ValueId>(v))] = end_;
    }
  }

  MemoryPlan run() {
    place_assignments();
    for (const LoweredNode& node : program_.nodes) {  // now, because an update may overwrite a copy of a weight
      if (!node.invariant) continue;
      for (const ValueId id : node.outputs) last_read_[root(id)] = end_;
    }
    for (std::size_t v = 0; v < program_.values.size(); ++v) {
      const LoweredValue& value = program_.values[v];
      if (value.kind == LoweredValue::Kind::variable) plan_.storage[v].variable = static_cast<ValueId>(v);
      if (value.kind == LoweredValue::Kind::input) new_block(static_cast<ValueId>(v), 0, end_);
    }
    plan_.workspaces.resize(program_.nodes.size());
    for (std::size_t n = 0; n < program_.nodes.size(); ++n) {
      const LoweredNode& node = program_.nodes[n];
      if (node.is_alias()) continue;
      place_outputs(node, static_cast<std::int32_t>(n));
      if (const std::size_t bytes = node.kernel ? node.kernel->workspace() : 0; bytes > 0) {
        plan_.workspaces[n] = plan_.blocks.size();
        plan_.blocks.push_back({bytes, static_cast<std::int32_t>(n), static_cast<std::int32_t>(n)});
      }
    }
    for (std::size_t v = 0; v < program_.values.size(); ++v) {
      if (program_.values[v].alias_of >= 0) plan_.storage[v] = plan_.storage[root(static_cast<ValueId>(v))];
    }
    return std::move(plan_);
  }

 private:
  [[nodiscard]] std::size_t root(ValueId id) const { return roots_[static_cast<std::size_t>(id)]; }

  // Where a value is made: a node and which of its outputs.
  struct Made {
    std::int32_t node = -1;
    std::size_t output = 0;
  };

  void place_assignments() {
    std::vector<Made> made(program_.values.size());
    for (std::size_t n = 0; n < program_.nodes.size(); ++n) {
      const std::vector<ValueId>& outputs = program_.nodes[n].outputs;
      for (std::size_t k = 0; k < outputs.size(); ++k) {
        made[static_cast<std::size_t>(outputs[k])] = {static_cast<std::int32_t>(n), k};
      }
    }
    for (const LoweredAssignment& assignment : program_.assignments) {
      if (!retains_all_ && may_overwrite(assignment, made[root(assignment.value)])) {
        plan_.storage[root(assignment.value)].variable = assignment.variable;
      } else {
        last_read_[root(assignment.value)] = end_;
        plan_.copies.push_back(assignment);
      }
    }
  }

  // The node that makes the value may write into the variable: no later node reads the old value, and if the node
  // itself reads it, it works in place.
  [[nodiscard]] bool may_overwrite(const LoweredAssignment& assignment, const Made& made) const {
    if (made.node < 0) return false;
    const LoweredNode& node = program_.nodes[static_cast<std::size_t>(made.node)];
    if (last_read_[static_cast<std::size_t>(assignment.variable)] > made.node) return false;
    return in_place_or_unread(node, made.output, assignment.variable);
  }

  [[nodiscard]] bool in_place_or_unread(const LoweredNode& node, std::size_t k, ValueId overwritten) const {
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (root(node.inputs[i]) == root(overwritten) && !same_element_order(node, i, k)) return false;
    }
    return true;
  }

  // Element j of output k may be written once element j of input i was read.
  [[nodiscard]] bool same_element_order(const LoweredNode& node, std::size_t i, std::size_t k) const {
    const LoweredValue& from = program_.value(node.inputs[i]);
    const LoweredValue& to = program_.value(node.outputs[k]);
    return Lowered::in_place(node, i, k) && from.spec == to.spec && same_layout(from.layout, to.layout);
  }

  void place_outputs(const LoweredNode& node, std::int32_t position) {
    std::vector<std::size_t> shared;  // blocks already taken by an output of this node
    for (std::size_t k = 0; k < node.outputs.size(); ++k) {
      const auto id = static_cast<std::size_t>(node.outputs[k]);
      if (const ValueId variable = plan_.storage[id].variable; variable >= 0) {
        const bool is_copy = program_.value(variable).kind != LoweredValue::Kind::variable;
        if (is_copy) plan_.storage[id] = plan_.storage[static_cast<std::size_t>(variable)];
        continue;
      }
      const std::int32_t last = std::max(last_read_[id], position);
      if (const auto block = dying_input(node, k, position, shared)) {
        shared.push_back(*block);
        plan_.storage[id].block = block;
        plan_.blocks[*block].last = last;
      } else {
        new_block(node.outputs[k], node.invariant ? 0 : position, last);
      }
    }
  }

  [[nodiscard]] std::optional<std::size_t> dying_input(const LoweredNode& node, std::size_t k, std::int32_t position,
                                                       const std::vector<std::size_t>& shared) const {
    if (retains_all_) return {};
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const std::size_t from = root(node.inputs[i]);
      const auto block = plan_.storage[from].block;
      if (!block || plan_.blocks[*block].last != position || last_read_[from] != position) continue;
      if (program_.values[from].kind != LoweredValue::Kind::computed) continue;
      if (std::find(shared.begin(), shared.end(), *block) != shared.end()) continue;
      if (same_element_order(node, i, k) && in_place_or_unread(node, k, static_cast<ValueId>(from))) return block;
    }
    return {};
  }

  void new_block(ValueId id, std::int32_t first, std::int32_t last) {
    plan_.storage[static_cast<std::size_t>(id)].block = plan_.blocks.size();
    plan_.blocks.push_back({program_.bytes(id), first, last});
  }

  const Lowered& program_;
  bool retains_all_;
  std::int32_t end_ = 0;
  std::vector<std::size_t> roots_;       // by value
  std::vector<std::int32_t> last_read_;  // by root value; `end_` when needed after the run
  MemoryPlan plan_;
};

}  // namespace

Arena place_blocks(std::span<const MemoryBlock> blocks, std::size_t slab_limit) {
  std::vector<std::size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return blocks[a].bytes > blocks[b].bytes; });
  Arena arena;
  arena.placements.resize(blocks.size());
  std::vector<std::vector<std::size_t>> placed;  // by slab, blocks in it
  for (const std::size_t block : order) {
    const std::size_t bytes = aligned(blocks[block].bytes);
    CONCORD_CHECK(bytes <= slab_limit, OutOfMemory, "one value needs {} bytes, the device allocates at most {} at once",
                  bytes, slab_limit);
    for (std::size_t slab = 0;; ++slab) {
      if (slab == placed.size()) {
        placed.emplace_back();
        arena.slabs.push_back(0);
      }
      std::vector<std::pair<std::size_t, std::size_t>> taken;  // offsets of blocks alive at the same time
      for (const std::size_t other : placed[slab]) {
        if (blocks[other].first <= blocks[block].last && blocks[block].first <= blocks[other].last) {
          const std::size_t offset = arena.placements[other].offset;
          taken.emplace_back(offset, offset + aligned(blocks[other].bytes));
        }
      }
      std::sort(taken.begin(), taken.end());
      std::size_t offset = 0;
      for (const auto& [begin, end] : taken) {
        if (offset + bytes <= begin) break;
        offset = std::max(offset, end);
      }
      if (offset + bytes > slab_limit) continue;
      arena.placements[block] = {slab, offset};
      arena.slabs[slab] = std::max(arena.slabs[slab], offset + bytes);
      placed[slab].push_back(block);
      break;
    }
  }
  return arena;
}

std::vector<std::size_t> bytes_in_use(std::span<const MemoryBlock> blocks, std::size_t nodes) {
  std::vector<std::size_t> begin(nodes + 1, 0), end(nodes + 1, 0);
  for (const MemoryBlock& block : blocks) {
    begin[static_cast<std::size_t>(block.first)] += aligned(block.bytes);
    end[std::min(nodes, static_cast<std::size_t>(block.last) + 1)] += aligned(block.bytes);
  }
  std::vector<std::size_t> bytes(nodes, 0);
  std::size_t now = 0;
  for (std::size_t n = 0; n < nodes; ++n) {
    now = now + begin[n] - end[n];
    bytes[n] = now;
  }
  return bytes;
}

MemoryPlan plan_memory(const Lowered& program, bool retains_all) { return Planner(program, retains_all).run(); }

}  // namespace concord
