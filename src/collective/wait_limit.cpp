// The thread looks at the time of the wait under way.
#include "concord/collective/wait_limit.hpp"

#include <utility>

namespace concord::collective {

WaitLimit::WaitLimit(std::chrono::duration<double> limit) : limit_(limit), thread_([this] { watch(); }) {}

WaitLimit::~WaitLimit() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

bool WaitLimit::is_exceeded(const std::function<void()>& wait, std::function<void()> abort) {
  {
    const std::lock_guard lock(mutex_);
    abort_ = std::move(abort);
    waited_ = RunningTime();
    is_aborted_ = false;
  }
  const auto end = [this] {
    const std::lock_guard lock(mutex_);  // after it `abort` is called no more
    abort_ = nullptr;
    return is_aborted_;
  };
  try {
    wait();
  } catch (...) {
    end();
    throw;
  }
  return end();
}

void WaitLimit::watch() {
  constexpr std::chrono::milliseconds kBetween{50};
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, kBetween, [this] { return is_over_; })) {
    if (!abort_ || is_aborted_ || waited_.look() <= limit_) continue;
    is_aborted_ = true;
    abort_();
  }
}

}  // namespace concord::collective
