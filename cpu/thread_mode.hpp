// How threads compute in this backend: numbers below the normal ones count as zero, and signals are blocked.
#pragma once

#include <cstdint>

#include "signals.hpp"

namespace concord::cpu {

/// While it lives:
/// - The calling thread takes subnormal numbers (below 2^-126) for 0, read and written; processors need up to a hundred
///   times as long for them, which training on few samples runs into as gradients vanish. The mode is that of x86-64
///   and 64-bit ARM; others compute as they are.
/// - Signals do not reach it (signals.hpp).
/// The thread gets its own mode back at the end. OpenMP's threads keep the new one: a region to set it takes longer
/// than many a kernel, so it is set once for a number of threads. A thread that the calling program's own regions add
/// to OpenMP's pool later is not known.
class ThreadMode {
 public:
  ThreadMode();
  ~ThreadMode();
  ThreadMode(const ThreadMode&) = delete;
  ThreadMode& operator=(const ThreadMode&) = delete;

 private:
  SignalsBlocked signals_;
  std::uint64_t before_;
};

}  // namespace concord::cpu
