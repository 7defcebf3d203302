// The memory plan: which value lies where in the arena of a program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "concord/compile/lowered.hpp"

namespace concord {

/// A piece of memory needed from node `first` to node `last` of a program.
struct MemoryBlock {
  std::size_t bytes = 0;
  std::int32_t first = 0, last = 0;
};

struct Placement {
  std::size_t slab = 0, offset = 0;
};

struct Arena {
  std::vector<Placement> placements;  // one a block
  std::vector<std::size_t> slabs;     // their sizes
};

/// Places blocks so that those alive at the same time do not overlap: the largest first, at the lowest free offset. No
/// slab grows beyond `slab_limit` (one allocation of the device). Throws OutOfMemory if a single block does.
[[nodiscard]] Arena place_blocks(std::span<const MemoryBlock> blocks, std::size_t slab_limit);

/// The bytes in use at each of `nodes` nodes, as in an arena without gaps.
[[nodiscard]] std::vector<std::size_t> bytes_in_use(std::span<const MemoryBlock> blocks, std::size_t nodes);

/// Where each value of a program is stored.
struct MemoryPlan {
  /// Storage of a value's root: an arena block, or directly the buffer of the variable it is assigned to.
  struct Storage {
    std::optional<std::size_t> block;
    ValueId variable = -1;
  };
  std::vector<Storage> storage;           // by value
  std::vector<LoweredAssignment> copies;  // assignments left to do after the last node
  std::vector<MemoryBlock> blocks;
  std::vector<std::optional<std::size_t>> workspaces;  // by node: the block that its kernel works in while it runs
};

/// Finds lifetimes. Lets an operator that can work in place overwrite an input that no later node reads. Stores an
/// assigned value directly in its variable if no node reads the old value afterwards. With `retains_all` nothing is
/// shared, and all assignments are copies after the last node. Before choose_layouts, the plan is for row-major values
/// without workspaces.
[[nodiscard]] MemoryPlan plan_memory(const Lowered& program, bool retains_all);

}  // namespace concord
