// One thread, one queue.
#include "concord/compare/beside.hpp"

#include <utility>

namespace concord {

Beside::~Beside() { end(true); }

void Beside::add(std::function<void()> job) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return jobs_.size() < most_ || thrown_; });
  rethrow();
  jobs_.push_back(std::move(job));
  changed_.notify_all();
}

void Beside::finish() {
  end(false);
  rethrow();
}

void Beside::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return !jobs_.empty() || ended_; });
    if (jobs_.empty()) return;
    const std::function<void()> job = std::move(jobs_.front());
    jobs_.pop_front();
    changed_.notify_all();
    lock.unlock();
    std::exception_ptr thrown;
    try {
      job();
    } catch (...) {
      thrown = std::current_exception();
    }
    lock.lock();
    if (!thrown) continue;
    thrown_ = thrown;
    jobs_.clear();
    changed_.notify_all();
    return;
  }
}

void Beside::end(bool drop) {
  {
    const std::lock_guard lock(mutex_);
    if (drop) jobs_.clear();
    ended_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void Beside::rethrow() const {
  if (thrown_) std::rethrow_exception(thrown_);
}

}  // namespace concord
