// The number of host threads that Concord computes with: CPU kernels, initial values, comparisons.
#pragma once

#include "concord/core/export.hpp"

namespace CONCORD_PUBLIC concord {

/// The value of `set_num_threads`, else $CONCORD_NUM_THREADS, else $OMP_NUM_THREADS, else the number of processors that
/// the process may use: those of its affinity, and at most the quota of its container, rounded up. At least 1.
[[nodiscard]] int num_threads();

/// Sets the number of threads for the whole process. Devices opened and programs compiled after the call use `threads`
/// threads. Programs compiled earlier keep their own number as an upper limit. The bits of some results depend on the
/// number of threads. OpenMP code of the calling program is not affected. CPU kernels take no more threads than
/// $OMP_THREAD_LIMIT. Inside a parallel region of the calling program they use as many as elsewhere, but start them for
/// each kernel, which takes longer. Throws ArgumentError for a number outside [1, 4096].
void set_num_threads(int threads);

}  // namespace concord
