// Numbers below the normal ones count as zero while this backend computes.
#pragma once

#include <cstdint>

namespace concord::cpu {

/// While it lives the calling thread takes subnormal numbers (below 2^-126) for 0, read and written; processors need up
/// to a hundred times as long for them, which training on few samples runs into as gradients vanish. The thread gets
/// its own mode back at the end. OpenMP's threads keep the new one: a region to set it takes longer than many a kernel.
/// They hold signals from then on (signals.hpp). The mode is that of x86-64 and 64-bit ARM; others compute as they are.
class SubnormalsAreZero {
 public:
  SubnormalsAreZero();
  ~SubnormalsAreZero();
  SubnormalsAreZero(const SubnormalsAreZero&) = delete;
  SubnormalsAreZero& operator=(const SubnormalsAreZero&) = delete;

 private:
  std::uint64_t before_;
};

}  // namespace concord::cpu
