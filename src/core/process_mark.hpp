// ProcessMark: tells an object that this process made from one that it inherited by fork. Threads and drivers do not
// come along: whoever waits for them in the child waits for ever.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>
#include <utility>

#include "concord/core/export.hpp"

namespace CONCORD_PUBLIC concord {

class ProcessMark {
 public:
  /// Made by the process that calls it.
  ProcessMark() : forks_(counted()) {}
  /// Whether a parent of this process made it. Costs one comparison.
  [[nodiscard]] bool is_inherited() const { return forks_ != forks.load(std::memory_order_relaxed); }
  /// Throws DeviceError naming `what` ("the device cpu") and what to do, when it is inherited.
  void require_own(std::string_view what) const {
    if (is_inherited()) refuse(what);
  }

 private:
  /// From the first call on the system counts forks.
  static std::uint32_t counted();
  [[noreturn]] static void refuse(std::string_view what);

  static std::atomic<std::uint32_t> forks;  // between the first process and this one
  std::uint32_t forks_;
};

/// Keeps an inherited object for ever, since its destructor would wait for threads that are not there.
template <class T>
void abandon(T object) {
  static_cast<void>(new T(std::move(object)));  // NOLINT(cppcoreguidelines-owning-memory)
}

}  // namespace concord
