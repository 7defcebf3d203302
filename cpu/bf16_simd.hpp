// Loops over numbers stored in bf16. Used by the families that keep values in 16 bits.
#pragma once

#include <cstdint>

#include "concord/core/bf16.hpp"

namespace concord::cpu {

using concord::Bf16, concord::bf16_bits;
static_assert(sizeof(Bf16) == 2);

/// to = value, rounded to the stored type. Writes a member, since GCC does not vectorise copies of structures.
[[gnu::always_inline]] inline void put(float& to, float value) { to = value; }
[[gnu::always_inline]] inline void put(Bf16& to, float value) { to.bits = bf16_bits(value); }

/// dst[i] = src[i] for i in [0, n).
void bf16_load(const Bf16* src, float* dst, std::int64_t n);
/// dst[i] = src[i], rounded, for i in [0, n).
void bf16_store(const float* src, Bf16* dst, std::int64_t n);
/// values[i] = max(values[i], 0) for i in [0, n). NaN stays.
void bf16_relu(Bf16* values, std::int64_t n);

}  // namespace concord::cpu
