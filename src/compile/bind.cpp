// Memory and launches of a program: the arena of its plan, the storage of its variables, each kernel bound to its
// operands.
#include <algorithm>

#include "concord/compile/plan.hpp"
#include "concord/compile/program_impl.hpp"
#include "concord/core/check.hpp"

namespace concord {
namespace {

void add_source(ProgramImpl& program, const Buffer* buffer) {
  const auto is_same = [&](const auto& other) { return other.get() == buffer; };
  if (std::ranges::none_of(program.variable_buffers, is_same)) return;  // made by another invariant node
  program.sources.push_back({buffer, 0});
}

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

Arena place(const Lowered& lowered, const MemoryPlan& plan, const DeviceInfo& device) {
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
  return place_blocks(plan.blocks, limit);
}

std::size_t missing_bytes(const Lowered& lowered, const Variables& variables) {
  std::size_t bytes = 0;
  for (const LoweredValue& value : lowered.values) {
    if (value.variable && !variables.contains(value.name)) bytes += value.spec.bytes();
  }
  return bytes;
}

void allocate(ProgramImpl& program, const MemoryPlan& plan) {
  const DeviceInfo& info = program.device().info();
  const Arena arena = place(program.lowered, plan, info);
  for (const std::size_t bytes : arena.slabs) program.memory += bytes;
  const std::size_t needed = program.memory + missing_bytes(program.lowered, *program.variables);
  CONCORD_CHECK(info.memory == 0 || needed + program.device().allocated() <= info.memory, OutOfMemory,
                "the program needs {} MiB in addition to the {} MiB in use; {} has {} MiB", needed >> 20,
                program.device().allocated() >> 20, info.name, info.memory >> 20);
  for (const std::size_t bytes : arena.slabs) program.slabs.push_back(program.device().allocate(bytes));

  const auto block = [&](std::optional<std::size_t> number) -> Operand {
    if (!number) return {};
    const Placement& placement = arena.placements[*number];
    return {program.slabs[placement.slab].get(), placement.offset};
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

  const auto operand = [&](ValueId id) { return program.operands[static_cast<std::size_t>(id)]; };
  for (std::size_t n = 0; n < program.lowered.nodes.size(); ++n) {
    const LoweredNode& node = program.lowered.nodes[n];
    if (!node.kernel) continue;
    std::vector<Operand> inputs, outputs;
    for (const ValueId id : node.inputs) inputs.push_back(operand(id));
    for (const ValueId id : node.outputs) outputs.push_back(operand(id));
    std::unique_ptr<Launch> launch = node.kernel->bind(inputs, outputs, block(plan.workspaces[n]));
    if (node.invariant) {
      program.invariant.push_back(std::move(launch));
      for (const Operand& source : inputs) add_source(program, source.buffer);
      continue;
    }
    program.launches.push_back(std::move(launch));
    program.launch_nodes.push_back(n);
  }
  for (const LoweredAssignment& assignment : program.lowered.assignments) {
    program.assigned.push_back(operand(assignment.variable).buffer);
  }
  for (const LoweredAssignment& copy : plan.copies) {
    program.commits.push_back({operand(copy.value), operand(copy.variable), program.lowered.bytes(copy.variable)});
  }
}

}  // namespace concord
