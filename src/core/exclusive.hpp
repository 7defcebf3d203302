// Exclusive: an object that one thread at a time may use says so to another thread instead of falling over it.
#pragma once

#include <atomic>
#include <string_view>
#include <thread>

#include "concord/core/export.hpp"

namespace CONCORD_PUBLIC concord {

/// Which thread uses an object. The same thread may enter again; a copy of the object is used by nobody yet.
class Exclusive {
 public:
  Exclusive() = default;
  Exclusive(const Exclusive& /*other*/) noexcept {}
  Exclusive& operator=(const Exclusive& /*other*/) noexcept { return *this; }

  /// The calling thread's use of it, which begins and ends with this object. Two atomic operations, no lock.
  class Use {
   public:
    /// Throws ArgumentError naming `what` ("the device cpu") while another thread is inside.
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
  int depth_ = 0;  // of the owner's uses
};

}  // namespace concord
