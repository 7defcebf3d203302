// Blocks are handed out in turn; threads live as long as the loop.
#include "concord/core/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>
#include <vector>

namespace concord {

void for_blocks(std::size_t n, const std::function<void(std::size_t i, std::size_t first, std::size_t count)>& block,
                std::size_t least) {
  const std::size_t blocks = blocks_of(n);
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < blocks; i = next++) {
      block(i, i * kBlockElements, std::min(kBlockElements, n - i * kBlockElements));
    }
  };
  std::vector<std::jthread> threads;
  const std::size_t useful = std::min<std::size_t>(std::thread::hardware_concurrency(), blocks / least);
  try {
    for (std::size_t i = 1; i < useful; ++i) threads.emplace_back(work);
  } catch (const std::system_error&) {  // the machine has no more threads: those that are there do it
  }
  work();
}

}  // namespace concord
