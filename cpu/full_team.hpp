// Work that waits for a fixed number of OpenMP's threads, also when the calling program is in a parallel region of its
// own. Used wherever primitives are made and run.
#pragma once

#include <functional>

namespace concord::cpu {

/// work() where OpenMP's regions and oneDNN's primitives have `threads` threads (TeamSize): on the calling thread or,
/// if that one is in a parallel region, where OpenMP gives a region one thread only, on a thread of its own in the same
/// ThreadMode. Throws what `work` throws, and DeviceError where no thread can be started.
void with_full_team(int threads, const std::function<void()>& work);

}  // namespace concord::cpu
