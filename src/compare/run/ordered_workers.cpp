// Threads, a queue of jobs and one of what they found.
#include "concord/compare/run/ordered_workers.hpp"

#include <system_error>
#include <utility>

#include "concord/core/timeline.hpp"

namespace concord {

OrderedWorkers::OrderedWorkers(std::size_t threads, std::size_t most) : most_(most) {
  try {
    for (std::size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
  } catch (const std::system_error&) {
    if (threads_.empty()) throw;
  }
}

OrderedWorkers::~OrderedWorkers() { end(true); }

void OrderedWorkers::add(Job job) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return waiting_.size() < most_ || thrown_; });
  rethrow();
  waiting_.push_back(std::move(job));
  changed_.notify_all();
}

void OrderedWorkers::finish() {
  end(false);
  rethrow();
}

void OrderedWorkers::work() {
  timeline::name_thread("checks");
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return !waiting_.empty() || ended_; });
    if (waiting_.empty()) return;
    const Job job = std::move(waiting_.front());
    waiting_.pop_front();
    const std::size_t place = noted_ + found_.size();
    found_.emplace_back();
    changed_.notify_all();
    lock.unlock();
    try {
      Note note;
      {
        const timeline::Span span("check");
        note = job();
      }
      lock.lock();
      found_[place - noted_] = std::move(note);
      note_found(lock);
    } catch (...) {
      if (!lock.owns_lock()) lock.lock();
      if (!thrown_) thrown_ = std::current_exception();
      waiting_.clear();
      changed_.notify_all();
    }
  }
}

/// Notes the results of jobs, up to the first job that still runs. If another thread is noting already, that thread
/// notes these too.
void OrderedWorkers::note_found(std::unique_lock<std::mutex>& lock) {
  if (is_noting_) return;
  is_noting_ = true;
  while (!found_.empty() && found_.front() && !thrown_) {
    const Note note = std::move(*found_.front());
    found_.pop_front();
    ++noted_;
    lock.unlock();
    note();
    lock.lock();
  }
  is_noting_ = false;
}

void OrderedWorkers::end(bool drop) {
  {
    const std::lock_guard lock(mutex_);
    if (drop) waiting_.clear();
    ended_ = true;
    changed_.notify_all();
  }
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void OrderedWorkers::rethrow() const {
  if (thrown_) std::rethrow_exception(thrown_);
}

}  // namespace concord
