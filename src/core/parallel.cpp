// Blocks are handed out in turn; threads live as long as the loop.
#include "concord/core/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

#include "concord/core/threads.hpp"

namespace concord {

void for_blocks(std::size_t n, const std::function<void(std::size_t i, std::size_t first, std::size_t count)>& block,
                std::size_t least) {
  std::exception_ptr error;
  std::atomic<bool> failed = false;
  const std::size_t blocks = blocks_of(n);
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    try {
      for (std::size_t i = next++; i < blocks && !failed; i = next++) {
        block(i, i * kBlockElements, std::min(kBlockElements, n - i * kBlockElements));
      }
    } catch (...) {
      if (!failed.exchange(true)) error = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> threads;
    const std::size_t useful = std::min<std::size_t>(static_cast<std::size_t>(num_threads()), blocks / least);
    try {
      for (std::size_t i = 1; i < useful; ++i) threads.emplace_back(work);
    } catch (const std::system_error&) {  // the machine has no more threads: those that are there do it
    } catch (const std::bad_alloc&) {     // nor memory for them
    }
    work();
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace concord
