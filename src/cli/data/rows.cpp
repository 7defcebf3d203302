// Threads that claim samples, and progress.
#include "concord/cli/data/rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>

#include "concord/cli/command.hpp"
#include "concord/core/platform.hpp"

namespace concord::cli {
namespace {

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

RowProgress::RowProgress(std::string doing, std::int64_t total, bool is_quiet)
    : doing_(std::move(doing)),
      total_(total),
      width_(terminal_width()),
      is_quiet_(is_quiet),
      begin_(std::chrono::steady_clock::now()),
      last_(begin_) {}

RowProgress::~RowProgress() {
  if (is_quiet_ || !width_) return;
  std::cerr << '\r' << std::string(static_cast<std::size_t>(std::max(*width_ - 1, 0)), ' ') << '\r' << std::flush;
}

void RowProgress::add() {
  const std::int64_t done = ++done_;
  if (is_quiet_) return;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock || seconds_since(last_) < (width_ ? 0.2 : 10.0)) return;
  last_ = std::chrono::steady_clock::now();
  print(done);
}

void RowProgress::print(std::int64_t done) {
  const double rate = static_cast<double>(done) / std::max(seconds_since(begin_), 1e-9);
  const std::string line = fmt::format("{} {} of {} ({:.0f} %), {:.0f} a second", doing_, done, total_,
                                       100.0 * static_cast<double>(done) / static_cast<double>(total_), rate);
  if (!width_) {
    std::cerr << line << std::endl;
    return;
  }
  const auto room = static_cast<std::size_t>(std::max(*width_ - 1, 0));
  std::cerr << '\r' << line.substr(0, room) << std::string(room - std::min(room, line.size()), ' ') << std::flush;
}

void for_rows(std::int64_t n, int threads, const std::function<void(std::int64_t row, std::size_t thread)>& work) {
  std::atomic<std::int64_t> next = 0;
  std::vector<std::exception_ptr> failures(static_cast<std::size_t>(std::max(threads, 1)));
  const auto run = [&](std::size_t thread) {
    try {
      for (std::int64_t row = next++; row < n; row = next++) {
        if (stop_requested()) throw StoppedByUser();
        work(row, thread);
      }
    } catch (...) {
      failures[thread] = std::current_exception();
      next = n;
    }
  };
  {
    std::vector<std::jthread> others;
    for (std::size_t t = 1; t < failures.size() && static_cast<std::int64_t>(t) < n; ++t) others.emplace_back(run, t);
    run(0);
  }
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace concord::cli
