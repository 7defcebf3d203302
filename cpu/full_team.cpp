// A thread outside of the program's parallel regions.
#include "full_team.hpp"

#include <exception>
#include <system_error>
#include <thread>

#include "concord/core/check.hpp"
#include "thread_mode.hpp"
#include "threads.hpp"

namespace concord::cpu {
namespace {

/// Whether a region of the calling thread gets so many threads.
bool has_team(int threads) {
  if (threads == 1) return true;
  return omp_in_parallel() == 0 && omp_get_max_active_levels() > 0 && omp_get_thread_limit() >= threads;
}

std::thread started(const std::function<void()>& function) {
  try {
    return std::thread(function);
  } catch (const std::system_error& error) {
    throw DeviceError(
        fmt::format("cpu: in a parallel region a kernel takes a thread of its own, which cannot be "
                    "started: {}. Use fewer threads",
                    error.what()));
  }
}

}  // namespace

void with_full_team(int threads, const std::function<void()>& work) {
  if (has_team(threads)) {
    const TeamSize team(threads);
    return work();
  }
  std::exception_ptr error;
  const SignalsBlocked signals;  // the new thread starts with them blocked
  started([&] {
    try {
      const ThreadMode mode;
      const TeamSize team(threads);
      work();
    } catch (...) {
      error = std::current_exception();
    }
  }).join();
  if (error) std::rethrow_exception(error);
}

}  // namespace concord::cpu
