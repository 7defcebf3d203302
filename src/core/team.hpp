// Team: threads that wait for work, for loops so short that starting threads for each would take longer.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace concord {

class Team {
 public:
  /// At most so many threads, with the one that calls for_pieces; fewer if the machine has no more. The first loop that
  /// needs them starts them.
  explicit Team(int threads) : most_(static_cast<std::size_t>(std::max(threads, 1))) {}
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;
  ~Team();

  /// Calls piece(first, count) on the threads, until the pieces are all n elements. A piece has `least` elements or
  /// more, except for the last one. `piece` must not throw, and its result must not depend on the cut. One loop at a
  /// time.
  void for_pieces(std::size_t n, std::size_t least,
                  const std::function<void(std::size_t first, std::size_t count)>& piece);

 private:
  void start_threads();
  void wait_for_work();
  void work();

  const std::size_t most_;
  std::mutex mutex_;
  std::condition_variable begin_, end_;
  std::size_t places_ = 0;  // of threads that may still join the loop
  std::size_t busy_ = 0;    // threads in it, but for the one that called
  bool is_over_ = false;    // the team is
  // The loop.
  const std::function<void(std::size_t, std::size_t)>* piece_ = nullptr;
  std::size_t n_ = 0, size_ = 0;
  std::atomic<std::size_t> next_ = 0;
  std::vector<std::jthread> threads_;  // last: they end first
};

}  // namespace concord
