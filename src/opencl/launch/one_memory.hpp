// Kernels that receive one buffer for all. A launch costs the host time for each buffer that is an argument of its
// kernel: on NVIDIA's driver 0.3 to 0.5 us each, beside 5 us for the rest (H200, 2026-11-29: bench_launches). So
// kernels there may receive one buffer, and all others as offsets from it (PackedArguments in stage.hpp,
// shared/numbers.h). That needs a driver which moves no buffer that a kernel has used, as the maps of the copy engine
// do (gemm/hopper/tensor_map.hpp).
#pragma once

#include <string>
#include <vector>

namespace concord::opencl {

class Context;

/// ONE_MEMORY for programs whose kernels support it, where kernels of the device may receive one buffer for all: on
/// NVIDIA's GPUs that passed a check. CONCORD_DEBUG=memories=one or =each decides it for any device.
[[nodiscard]] std::vector<std::string> memory_definitions(Context& context);

}  // namespace concord::opencl
