// Exclusive: guards an object that only one thread at a time may use. A second thread gets an error instead of a data
// race.
#pragma once

#include <atomic>
#include <string_view>
#include <thread>

#include "concord/core/export.hpp"

namespace CONCORD_PUBLIC concord {

/// Records which thread uses an object. The same thread may enter again. A copy starts unused.
class Exclusive {
 public:
  Exclusive() = default;
  Exclusive(const Exclusive& /*other*/) noexcept {}
  Exclusive& operator=(const Exclusive& /*other*/) noexcept { return *this; }

  /// Marks the object as used by the calling thread during the lifetime of the Use. Costs two atomic operations, no
  /// lock.
  class Use {
   public:
    /// Throws ArgumentError while another thread uses the object. `what` returns the name for the message, such as "the
    /// device cpu".
    template <class What>
    Use(Exclusive& of, const What& what) : of_(of) {
      const std::thread::id self = std::this_thread::get_id();
      if (of.owner_.load(std::memory_order_relaxed) != self) {
        std::thread::id nobody;
        if (!of.owner_.compare_exchange_strong(nobody, self, std::memory_order_acquire)) refuse(what());
      }
      ++of.depth_;
    }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    ~Use() {
      if (--of_.depth_ == 0) of_.owner_.store({}, std::memory_order_release);
    }

   private:
    Exclusive& of_;
  };

 private:
  [[noreturn]] static void refuse(std::string_view what);

  std::atomic<std::thread::id> owner_ = {};
  int depth_ = 0;  // nested uses by the owner
};

}  // namespace concord
