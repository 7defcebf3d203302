// A number of host threads for a while. Used by the tests of the CPU backend.
#pragma once

#include "concord/core/threads.hpp"

namespace concord::test {

class HostThreads {
 public:
  explicit HostThreads(int threads) { set_num_threads(threads); }
  HostThreads(const HostThreads&) = delete;
  HostThreads& operator=(const HostThreads&) = delete;
  ~HostThreads() { set_num_threads(before_); }

 private:
  int before_ = num_threads();
};

}  // namespace concord::test
