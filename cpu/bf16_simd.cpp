// Loops between bf16 and fp32, vectorised.
#include "bf16_simd.hpp"

namespace concord::cpu {

CONCORD_SIMD void bf16_load(const Bf16* src, float* dst, std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) dst[i] = src[i];
}

CONCORD_SIMD void bf16_store(const float* src, Bf16* dst, std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) put(dst[i], src[i]);
}

CONCORD_SIMD void bf16_relu(Bf16* values, std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const std::uint16_t bits = values[i].bits;
    // Negative numbers are those from the sign alone up to -infinity; NaN lie above.
    const bool is_negative = bits >= 0x8000U && bits <= 0xff80U;
    values[i].bits = is_negative ? std::uint16_t{0} : bits;
  }
}

}  // namespace concord::cpu
