// Runs of the counter-based stream of cl_kernels/philox.h, compiled for several vector widths. Used by random and by
// the dropout of attention.
#pragma once

#include <cstdint>

namespace concord::cpu {

struct RandomStream {
  std::uint64_t seed;
  std::uint32_t step, purpose;
};

/// dst[i] = the uniform number of index 4·block + i, for i < 4·blocks.
void random_uniforms(const RandomStream& stream, std::uint64_t block, std::int64_t blocks, float* dst);

}  // namespace concord::cpu
