// How many threads of the host Concord computes with: the CPU's kernels, first values, comparisons.
#pragma once

#include "concord/core/export.hpp"

namespace CONCORD_PUBLIC concord {

/// At least 1: what `set_num_threads` said, else $CONCORD_NUM_THREADS, else $OMP_NUM_THREADS, else as many as the
/// process may use processors.
[[nodiscard]] int num_threads();

/// For the whole process. Devices opened and programs compiled from now on compute with so many threads, and what was
/// compiled before with no more than it was compiled for. The bits of some results depend on their number. What the
/// program itself does with OpenMP is not touched. Throws ArgumentError for a number outside [1, 4096].
void set_num_threads(int threads);

}  // namespace concord
