#include "concord/train/background.hpp"

#include <utility>

#include "concord/core/timeline.hpp"

namespace concord::train {

Background::~Background() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
    waiting_.clear();
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

std::future<void> Background::add(std::function<void()> work) {
  std::packaged_task<void()> task(std::move(work));
  std::future<void> end = task.get_future();
  const std::lock_guard lock(mutex_);
  waiting_.push_back(std::move(task));
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  changed_.notify_all();
  return end;
}

void Background::run() {
  timeline::name_thread("sums over ranks");
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return is_over_ || !waiting_.empty(); });
    if (is_over_) return;
    std::packaged_task<void()> task = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    task();
    lock.lock();
  }
}

}  // namespace concord::train
