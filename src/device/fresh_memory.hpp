// A debugging aid: a kernel that reads memory before anything was written to it gets NaN, which shows in the results.
#pragma once

#include "concord/device/device.hpp"

namespace concord {

/// With CONCORD_DEBUG=fill_memory=1, fills `memory`, which was just allocated, with bits that are NaN as fp32, fp16 and
/// bf16 and an index out of every range as i32. For the backends.
void fill_fresh(Device& device, Buffer& memory);

}  // namespace concord
