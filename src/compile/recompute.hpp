// Recomputation: results of the forward pass that the backward pass reads are computed again, just before they are
// read, instead of kept. Used by compile() and memory_need().
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "concord/compile/lowered.hpp"

namespace concord {

/// A program that computes some values again. `positions` has, for each of its nodes, the position of the node of the
/// first program that it is or that it runs before.
struct RecomputingProgram {
  Lowered program;
  std::vector<std::int32_t> positions;
};

/// For each value the position after which readers use a second computation of it.
using LastReads = std::vector<std::int32_t>;
inline constexpr std::int32_t kNeverAgain = INT32_MAX;

/// Returns the program in which every value v (no alias) whose `last_reads[v]` is not kNeverAgain is computed again
/// once: by a copy of its node with the same kernel, before the first node that reads it after that position. If no
/// node reads the results earlier, the node only moves there. The copies read values that still exist, or other
/// recomputed values. So the results have the same bits for any `last_reads` of computed values. Inputs, variables,
/// kept and assigned values must have kNeverAgain.
[[nodiscard]] RecomputingProgram with_recomputation(const Lowered& program, const LastReads& last_reads);

/// Changes `program` so that its arena on `device` takes at most `budget` bytes. If that is impossible, throws
/// MemoryBudgetError with the smallest number of bytes found, and `program` does not change. Call it after
/// find_invariants. For a program without kernels the plan is for row-major values.
///
/// The method is greedy, as rematerialisation in compilers is. It considers the values that wait unread while more than
/// the budget is in use. It first drops those that cost least to compute again, for each byte and node of waiting.
/// Inputs of their computation that no longer exist are computed again as well, so that sequences of values become the
/// segments of Chen et al., "Training Deep Nets with Sublinear Memory Cost" (2016). Segments are short at first and
/// grow only as far as they must.
void recompute(Lowered& program, std::size_t budget, const DeviceInfo& device);

}  // namespace concord
