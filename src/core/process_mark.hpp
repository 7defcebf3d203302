// ProcessMark: distinguishes objects of this process from objects inherited through fork. A child process has neither
// the threads nor the driver state of its parent, so waiting for them would never end.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>
#include <utility>

#include "concord/core/export.hpp"

namespace CONCORD_PUBLIC concord {

class ProcessMark {
 public:
  /// Marks the object as made by the calling process.
  ProcessMark() : forks_(counted()) {}
  /// Returns whether a parent of this process made the object. Costs one comparison.
  [[nodiscard]] bool is_inherited() const { return forks_ != forks.load(std::memory_order_relaxed); }
  /// Throws DeviceError if the object is inherited. The message names `what` ("the device cpu") and says what to do.
  void require_own(std::string_view what) const {
    if (is_inherited()) refuse(what);
  }

 private:
  /// Counts forks of the process, starting with the first call.
  static std::uint32_t counted();
  [[noreturn]] static void refuse(std::string_view what);

  static std::atomic<std::uint32_t> forks;  // between the first process and this one
  std::uint32_t forks_;
};

/// Leaks an inherited object on purpose: its destructor would wait for threads that do not exist in this process.
template <class T>
void abandon(T object) {
  static_cast<void>(new T(std::move(object)));  // NOLINT(cppcoreguidelines-owning-memory)
}

}  // namespace concord
