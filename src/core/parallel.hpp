// for_blocks: a loop over many elements on all cores, for the host's own work on large tensors (initial values,
// comparison). The result of a block must not depend on the thread that computes it.
#pragma once

#include <cstddef>
#include <functional>

namespace concord {

inline constexpr std::size_t kBlockElements = std::size_t{1} << 18;
[[nodiscard]] constexpr std::size_t blocks_of(std::size_t n) { return (n + kBlockElements - 1) / kBlockElements; }

/// Calls block(i, first, count) once for each i < blocks_of(n), for the `count` elements from `first` =
/// i·kBlockElements on. The first exception of a block ends the loop and is rethrown. Each thread has at least `least`
/// blocks if there are that many; use 1 for work that takes longer than starting a thread.
void for_blocks(std::size_t n, const std::function<void(std::size_t i, std::size_t first, std::size_t count)>& block,
                std::size_t least = 1);

}  // namespace concord
