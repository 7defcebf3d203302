// for_blocks: a loop over many elements by all cores, for the host's own work on large tensors (first values,
// comparison). What a block computes must not depend on which thread does it.
#pragma once

#include <cstddef>
#include <functional>

namespace concord {

inline constexpr std::size_t kBlockElements = std::size_t{1} << 18;
[[nodiscard]] constexpr std::size_t blocks_of(std::size_t n) { return (n + kBlockElements - 1) / kBlockElements; }

/// Calls block(i, first, count) once for each i < blocks_of(n), for the `count` elements from i·kBlockElements =
/// `first` on. The first
/// exception of a block ends the work and comes out. Each thread has at least `least` blocks, where there are that many: 1 for work
/// that takes longer than a thread takes to begin.
void for_blocks(std::size_t n, const std::function<void(std::size_t i, std::size_t first, std::size_t count)>& block,
                std::size_t least = 1);

}  // namespace concord
