// OpenMP's threads as this backend uses them: how many a kernel takes, how they wait, and that they survive a fork.
#pragma once

#include <omp.h>

#include <cstdint>

#include "concord/graph/operator.hpp"

namespace concord::cpu {

/// To be called before the first parallel region of the process. The threads of whoever forks the process end before,
/// so that the child, which would inherit none of them but the knowledge of them, starts its own.
void survive_forks();

/// To be called now and then by a thread that computes. Every tenth of a second it checks whether other work needs the
/// processors. If so, OpenMP's waiting threads sleep after microseconds; by default GCC's spin for milliseconds.
/// Without other work, spinning is twice as fast. $OMP_WAIT_POLICY and $GOMP_SPINCOUNT take precedence.
void watch_for_other_work();

/// Grows when threads may have been replaced by new ones: what was set on each of them is to be set again.
[[nodiscard]] std::uint64_t thread_generation();

/// The threads of a kernel with much work: num_threads(), but no more than OpenMP starts ($OMP_THREAD_LIMIT,
/// $OMP_MAX_ACTIVE_LEVELS).
[[nodiscard]] int team_threads();

/// While it lives, OpenMP's regions and oneDNN's primitives of the calling thread have so many threads: primitives
/// made, and those executed. Some primitives wait for as many threads as they were made for, so OpenMP may not choose
/// fewer ($OMP_DYNAMIC).
class TeamSize {
 public:
  explicit TeamSize(int threads)
      : before_(omp_get_max_threads()), was_dynamic_(omp_get_dynamic()), is_other_(threads != before_) {
    omp_set_dynamic(0);
    if (is_other_) omp_set_num_threads(threads);
  }
  TeamSize(const TeamSize&) = delete;
  TeamSize& operator=(const TeamSize&) = delete;
  ~TeamSize() {
    if (is_other_) omp_set_num_threads(before_);
    omp_set_dynamic(was_dynamic_);
  }

 private:
  int before_, was_dynamic_;
  bool is_other_;
};

/// Whether a kernel of so much work is done by the calling thread before others have woken up to help.
[[nodiscard]] inline bool is_small(const Cost& cost) {
  constexpr double kFlops = 4e10, kBytes = 1e10, kSeconds = 15e-6;  // of one thread
  return cost.flops / kFlops + cost.bytes / kBytes < kSeconds;
}

}  // namespace concord::cpu
