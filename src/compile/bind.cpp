// Memory and launches of a program: the arena of its plan, the storage of its variables, each kernel bound to its
// operands.
#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "concord/compile/plan.hpp"
#include "concord/compile/program_impl.hpp"
#include "concord/core/check.hpp"

namespace concord {
namespace {

/// Adds the launches of invariant nodes, each with the variables that it reads, directly or through earlier ones.
class InvariantParts {
 public:
  InvariantParts(const Lowered& lowered, ProgramImpl::Invariants& invariants)
      : lowered_(lowered), invariants_(invariants) {
    for (const LoweredAssignment& assignment : lowered.assignments) written_.insert(assignment.variable);
  }

  void add(const LoweredNode& node, std::span<const Operand> inputs, std::unique_ptr<Launch> launch) {
    std::vector<std::size_t> sources;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const ValueId root = lowered_.root(node.inputs[i]);
      if (lowered_.value(root).kind == LoweredValue::Kind::variable) {
        sources.push_back(place_of(inputs[i].buffer, written_.contains(node.outputs[0])));
      } else {
        sources.insert(sources.end(), sources_[root].begin(), sources_[root].end());
      }
    }
    for (const ValueId id : node.outputs) sources_[id] = sources;
    invariants_.parts.push_back({std::move(launch), std::move(sources)});
  }

 private:
  /// The buffer's place among the sources. `is_followed`: what is computed from it here is a copy that an update
  /// writes.
  std::size_t place_of(const Buffer* buffer, bool is_followed) {
    std::vector<ProgramImpl::Invariants::Source>& all = invariants_.sources;
    auto found = std::ranges::find(all, buffer, &ProgramImpl::Invariants::Source::buffer);
    if (found == all.end()) found = all.insert(found, ProgramImpl::Invariants::Source{buffer});
    found->is_followed = found->is_followed && is_followed;
    return static_cast<std::size_t>(found - all.begin());
  }

  const Lowered& lowered_;
  ProgramImpl::Invariants& invariants_;
  std::set<ValueId> written_;                            // by assignments
  std::map<ValueId, std::vector<std::size_t>> sources_;  // of the results of invariant nodes
};

/// Storage of a variable. A state of a parameter is given as one that shares the parameter's ownership, which says
/// whose it is.
Storage storage_of(const Lowered& lowered, const LoweredValue& wanted, Variables& variables) {
  const VariablePtr& variable = wanted.variable;
  if (variable->of.empty()) return variables.require(variable, wanted.name);
  for (const LoweredValue& value : lowered.values) {
    const bool is_it = value.variable && value.variable->role == VariableRole::parameter && value.name == variable->of;
    if (is_it) return variables.require(VariablePtr(value.variable, variable.get()), wanted.name);
  }
  return variables.require(*variable);
}

}  // namespace

void require_allocatable(const LoweredValue& value, std::size_t bytes, const DeviceInfo& device) {
  CONCORD_CHECK(device.max_allocation == 0 || bytes <= device.max_allocation, OutOfMemory,
                "the value '{}', {}, needs {} MiB; {} allocates at most {} MiB at once", value.name, value.spec.str(),
                bytes >> 20, device.name, device.max_allocation >> 20);
}

namespace {

/// Throws OutOfMemory naming the value that is larger than one allocation may be.
void require_placeable(const Lowered& lowered, const MemoryPlan& plan, const DeviceInfo& device) {
  const std::size_t limit = device.max_allocation > 0 ? device.max_allocation : SIZE_MAX;
  for (std::size_t v = 0; v < lowered.values.size(); ++v) {
    const std::optional<std::size_t> block = plan.storage[v].block;
    if (block) require_allocatable(lowered.values[v], plan.blocks[*block].bytes, device);
  }
  for (std::size_t n = 0; n < lowered.nodes.size(); ++n) {
    const std::optional<std::size_t> workspace = plan.workspaces[n];
    CONCORD_CHECK(!workspace || plan.blocks[*workspace].bytes <= limit, OutOfMemory,
                  "the kernel of '{}' needs a workspace of {} MiB; {} allocates at most {} MiB at once",
                  lowered.nodes[n].name, plan.blocks[*workspace].bytes >> 20, device.name, limit >> 20);
  }
}

}  // namespace

Arena place(const Lowered& lowered, const MemoryPlan& plan, const DeviceInfo& device) {
  require_placeable(lowered, plan, device);
  return place_blocks(plan.blocks, device.max_allocation > 0 ? device.max_allocation : SIZE_MAX);
}

std::size_t missing_bytes(const Lowered& lowered, const Variables& variables) {
  std::size_t bytes = 0;
  for (const LoweredValue& value : lowered.values) {
    if (value.variable && !variables.contains(value.name)) bytes += value.spec.bytes();
  }
  return bytes;
}

namespace {

/// Where the blocks of a program lie: in memory of its own, or in that which it shares with its twins.
class Blocks {
 public:
  Blocks(const ProgramImpl& program, const MemoryPlan& plan) : places_(plan.blocks.size()) {
    std::vector<bool> is_own(plan.blocks.size(), true);
    if (program.pause) {
      const auto end = static_cast<std::int32_t>(program.lowered.nodes.size());
      for (std::size_t b = 0; b < plan.blocks.size(); ++b) {
        const MemoryBlock& block = plan.blocks[b];
        is_own[b] = (block.first < program.pause->node && block.last >= program.pause->node) || block.last >= end;
      }
      for (const LoweredNode& node : program.lowered.nodes) {
        if (!node.invariant) continue;
        for (const ValueId id : node.outputs) {
          if (const auto block = plan.storage[static_cast<std::size_t>(id)].block) is_own[*block] = false;
        }
      }
    }
    const DeviceInfo& device = program.device().info();
    own = add(plan, is_own, true, device);
    scratch = add(plan, is_own, false, device);
  }

  std::vector<std::size_t> own, scratch;  // sizes of slabs

  [[nodiscard]] Operand operand(const ProgramImpl& program, std::size_t block) const {
    const auto& [is_own, placement] = places_[block];
    return {(is_own ? program.slabs : program.scratch)[placement.slab].get(), placement.offset};
  }

 private:
  std::vector<std::size_t> add(const MemoryPlan& plan, const std::vector<bool>& is_own, bool wanted,
                               const DeviceInfo& device) {
    std::vector<MemoryBlock> blocks;
    std::vector<std::size_t> numbers;
    for (std::size_t b = 0; b < plan.blocks.size(); ++b) {
      if (is_own[b] != wanted) continue;
      blocks.push_back(plan.blocks[b]);
      numbers.push_back(b);
    }
    Arena arena = place_blocks(blocks, device.max_allocation > 0 ? device.max_allocation : SIZE_MAX);
    for (std::size_t i = 0; i < numbers.size(); ++i) places_[numbers[i]] = {wanted, arena.placements[i]};
    return std::move(arena.slabs);
  }

  std::vector<std::pair<bool, Placement>> places_;
};

std::size_t sum_of(const std::vector<std::size_t>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::size_t{0});
}

}  // namespace

void allocate(ProgramImpl& program, const MemoryPlan& plan, const ProgramImpl* original) {
  const DeviceInfo& info = program.device().info();
  require_placeable(program.lowered, plan, info);
  const Blocks blocks(program, plan);
  program.memory = sum_of(blocks.own) + (original == nullptr ? sum_of(blocks.scratch) : 0);
  const std::size_t needed = program.memory + missing_bytes(program.lowered, *program.variables);
  CONCORD_CHECK(info.memory == 0 || needed + program.device().allocated() <= info.memory, OutOfMemory,
                "the program needs {} MiB in addition to the {} MiB in use; {} has {} MiB", needed >> 20,
                program.device().allocated() >> 20, info.name, info.memory >> 20);
  for (const std::size_t bytes : blocks.own) program.slabs.push_back(program.device().allocate(bytes));
  if (original != nullptr) {
    program.scratch = original->scratch;
    program.invariants = original->invariants;
  } else {
    for (const std::size_t bytes : blocks.scratch) program.scratch.push_back(program.device().allocate(bytes));
  }

  const auto block = [&](std::optional<std::size_t> number) -> Operand {
    return number ? blocks.operand(program, *number) : Operand{};
  };
  program.operands.resize(program.lowered.values.size());
  for (std::size_t v = 0; v < program.operands.size(); ++v) {
    const MemoryPlan::Storage& storage = plan.storage[v];
    if (storage.variable >= 0) {
      Storage held = storage_of(program.lowered, program.lowered.value(storage.variable), *program.variables);
      program.variable_buffers.push_back(std::move(held.buffer));
      program.operands[v] = {program.variable_buffers.back().get(), held.offset};
    } else {
      program.operands[v] = block(storage.block);
    }
  }

  InvariantParts invariants(program.lowered, *program.invariants);
  const auto operand = [&](ValueId id) { return program.operands[static_cast<std::size_t>(id)]; };
  for (std::size_t n = 0; n < program.lowered.nodes.size(); ++n) {
    const LoweredNode& node = program.lowered.nodes[n];
    if (!node.kernel) continue;
    std::vector<Operand> inputs, outputs;
    for (const ValueId id : node.inputs) inputs.push_back(operand(id));
    for (const ValueId id : node.outputs) outputs.push_back(operand(id));
    if (node.invariant && original != nullptr) continue;
    std::unique_ptr<Launch> launch = node.kernel->bind(inputs, outputs, block(plan.workspaces[n]));
    if (node.invariant) {
      invariants.add(node, inputs, std::move(launch));
      continue;
    }
    if (program.pause && std::cmp_less(n, program.pause->node)) program.pause->launches = program.launches.size() + 1;
    if (is_all_reduce(node)) program.all_reduces.push_back(program.launches.size());
    program.launches.push_back(std::move(launch));
    program.launch_nodes.push_back(n);
  }
  for (const LoweredAssignment& assignment : program.lowered.assignments) {
    const bool is_variable = program.lowered.value(assignment.variable).kind == LoweredValue::Kind::variable;
    if (is_variable) program.assigned.push_back(operand(assignment.variable).buffer);
  }
  // Those of values that are there at the pause come first.
  std::vector<bool> is_late(program.lowered.values.size(), false);
  for (std::size_t n = program.pause ? static_cast<std::size_t>(program.pause->node) : 0;
       program.pause && n < program.lowered.nodes.size(); ++n) {
    for (const ValueId id : program.lowered.nodes[n].outputs) is_late[static_cast<std::size_t>(id)] = true;
  }
  for (const bool late : {false, true}) {
    for (const LoweredAssignment& copy : plan.copies) {
      if (is_late[static_cast<std::size_t>(program.lowered.root(copy.value))] != late) continue;
      program.commits.push_back({operand(copy.value), operand(copy.variable), program.lowered.bytes(copy.variable)});
    }
    if (program.pause && !late) program.pause->commits = program.commits.size();
  }
}

}  // namespace concord
