// Work on all samples of a set by several threads, and a word on how far it is. Used by the subcommands of `concord
// data`.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace concord::cli {

/// Thrown where the user has stopped the command by a signal.
struct StoppedByUser {};

/// Prints on standard error how many of `total` are done: on a terminal a line that is written over, else a line every
/// ten seconds. Several threads may call `add`.
class RowProgress {
 public:
  RowProgress(std::string doing, std::int64_t total, bool is_quiet);
  RowProgress(const RowProgress&) = delete;
  RowProgress& operator=(const RowProgress&) = delete;
  ~RowProgress();
  void add();

 private:
  void print(std::int64_t done);

  std::string doing_;
  std::int64_t total_;
  std::optional<int> width_;  // of the terminal
  bool is_quiet_;
  std::chrono::steady_clock::time_point begin_, last_;
  std::atomic<std::int64_t> done_ = 0;
  std::mutex mutex_;  // guards last_
};

/// Calls work(row, thread) once for each row from 0 to n − 1, `thread` from 0 to threads − 1. The first exception ends
/// the loop and is thrown again; so does StoppedByUser.
void for_rows(std::int64_t n, int threads, const std::function<void(std::int64_t row, std::size_t thread)>& work);

/// Computes work(i, thread) for i from 0 to n − 1 by several threads, and calls take(i, result) in order on the calling
/// thread. Results that wait for their turn are at most four for each thread. An exception of work(i) is thrown in the
/// place of take(i, …); so the outcome does not depend on the threads.
template <class Result>
void in_order(std::int64_t n, int threads, const std::function<Result(std::int64_t i, std::size_t thread)>& work,
              const std::function<void(std::int64_t i, Result result)>& take) {
  struct Slot {
    std::optional<Result> result;
    std::exception_ptr error;
  };
  const std::int64_t ahead = 4 * static_cast<std::int64_t>(threads);
  std::vector<Slot> slots(static_cast<std::size_t>(ahead));
  std::mutex mutex;
  std::condition_variable changed;
  std::int64_t next = 0, taken = 0;
  bool is_over = false;
  const auto run = [&](std::size_t thread) {
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [&] { return is_over || next >= n || next < taken + ahead; });
      if (is_over || next >= n) return;
      const std::int64_t i = next++;
      lock.unlock();
      Slot done;
      try {
        done.result = work(i, thread);
      } catch (...) {
        done.error = std::current_exception();
      }
      lock.lock();
      slots[static_cast<std::size_t>(i % ahead)] = std::move(done);
      changed.notify_all();
    }
  };
  std::vector<std::jthread> workers;
  struct Ending {  // before the threads are waited for
    std::mutex& mutex;
    std::condition_variable& changed;
    bool& is_over;
    ~Ending() {
      const std::lock_guard lock(mutex);
      is_over = true;
      changed.notify_all();
    }
  } ending{mutex, changed, is_over};
  for (std::size_t t = 0; t < static_cast<std::size_t>(threads); ++t) workers.emplace_back(run, t);
  for (std::int64_t i = 0; i < n; ++i) {
    Slot slot;
    {
      std::unique_lock lock(mutex);
      Slot& waiting = slots[static_cast<std::size_t>(i % ahead)];
      changed.wait(lock, [&] { return waiting.result || waiting.error; });
      slot = std::exchange(waiting, Slot{});
      taken = i + 1;
      changed.notify_all();
    }
    if (slot.error) std::rethrow_exception(slot.error);
    take(i, std::move(*slot.result));
  }
}

}  // namespace concord::cli
