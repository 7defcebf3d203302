// Background: a thread that does pieces of work in their order while its owner continues. Internal to the library.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <thread>

namespace concord::train {

class Background {
 public:
  Background() = default;
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;
  /// Waits for the work that has begun; the rest is dropped.
  ~Background();
  /// The future ends with the work, or with its exception. The first call starts the thread.
  [[nodiscard]] std::future<void> add(std::function<void()> work);

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::packaged_task<void()>> waiting_;
  bool is_over_ = false;
  std::thread thread_;
};

}  // namespace concord::train
