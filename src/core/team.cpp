// A loop has places for threads; those that wake up too late find none.
#include "concord/core/team.hpp"

#include <new>
#include <system_error>

namespace concord {
namespace {

constexpr std::size_t kPiecesOfThread = 4;  // so that a slow thread does not hold up the others

}  // namespace

void Team::start_threads() {
  try {
    while (threads_.size() + 1 < most_) threads_.emplace_back([this] { wait_for_work(); });
  } catch (const std::system_error&) {  // the machine has no more threads
  } catch (const std::bad_alloc&) {     // nor memory for them
  }
}

Team::~Team() {
  const std::lock_guard lock(mutex_);
  is_over_ = true;
  begin_.notify_all();
}

void Team::for_pieces(std::size_t n, std::size_t least,
                      const std::function<void(std::size_t first, std::size_t count)>& piece) {
  if (n > least) start_threads();
  const std::size_t pieces = kPiecesOfThread * (threads_.size() + 1);
  const std::size_t size = std::max({least, (n + pieces - 1) / pieces, std::size_t{1}});
  const std::size_t helpers = std::min(threads_.size(), (n + size - 1) / size - std::min<std::size_t>(n, 1));
  {
    const std::lock_guard lock(mutex_);
    piece_ = &piece;
    n_ = n;
    size_ = size;
    next_ = 0;
    places_ = helpers;
  }
  for (std::size_t i = 0; i < helpers; ++i) begin_.notify_one();
  work();
  std::unique_lock lock(mutex_);
  places_ = 0;
  end_.wait(lock, [this] { return busy_ == 0; });
}

void Team::wait_for_work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    begin_.wait(lock, [this] { return places_ > 0 || is_over_; });
    if (is_over_) return;
    --places_;
    ++busy_;
    lock.unlock();
    work();
    lock.lock();
    if (--busy_ == 0) end_.notify_one();
  }
}

void Team::work() {
  for (std::size_t first = size_ * next_++; first < n_; first = size_ * next_++) {
    (*piece_)(first, std::min(size_, n_ - first));
  }
}

}  // namespace concord
