// Recomputation: results of the forward pass that the backward pass reads are computed again, just before they are
// read, instead of kept. Used by compile() and memory_need().
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "concord/compile/lowered.hpp"

namespace concord {

/// A program that computes some values again, and beside each of its nodes the position of the node of the first
/// program before which, or as which, it runs.
struct RecomputingProgram {
  Lowered program;
  std::vector<std::int32_t> positions;
};

/// By value: what reads it after this position reads a second computation of it.
using LastReads = std::vector<std::int32_t>;
inline constexpr std::int32_t kNeverAgain = INT32_MAX;

/// The program in which every value v (no alias) whose `last_reads[v]` is not kNeverAgain is computed again once, by a
/// copy of its node with the same kernel, before the first node that reads it after that position. A node whose results
/// nothing reads before only moves there. The copies read what
/// is there, or other values computed again. So results are the same bits, whatever `last_reads` says of values that
/// nodes compute; of inputs, variables, kept and assigned values it must say kNeverAgain.
[[nodiscard]] RecomputingProgram with_recomputation(const Lowered& program, const LastReads& last_reads);

/// Changes `program` so that its arena on `device` takes at most `budget` bytes. Throws MemoryBudgetError with the
/// least number of bytes found when that cannot be done; the program is then as it was. After find_invariants; on a
/// program without kernels the plan is one of row-major values.
///
/// Greedy, as rematerialisation in compilers is: of the values that wait unread while more than the budget is in use,
/// those go first that cost least to compute again for each byte and node of waiting. Whatever their computation needs
/// and is not there then is computed again as well, so that runs of values become the segments of Chen et al.,
/// "Training Deep Nets with Sublinear Memory Cost" (2016); segments are kept short at first and grow only as far as
/// they must.
void recompute(Lowered& program, std::size_t budget, const DeviceInfo& device);

}  // namespace concord
