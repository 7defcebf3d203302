// Loops over tiles: a few hundred floats that stay in the first-level cache while the instructions of an expression
// pass over them. Used by pointwise; compiled for several vector widths.
#pragma once

#include <cstddef>
#include <cstdint>

#include "concord/core/types.hpp"
#include "concord/graph/expression.hpp"

namespace concord::cpu {

/// Floats of a tile: a dozen of them, with what is read and written beside them, fit the first-level cache.
inline constexpr std::int64_t kTile = 512;

/// Floats from a tile to the next: not a multiple of 4 KiB, where a processor takes a load for one that waits for a
/// store.
inline constexpr std::int64_t kTilePitch = kTile + 80;

/// Elements at a time of a program that is one loop.
inline constexpr std::int64_t kLongRun = 2048;

/// An argument of an instruction: n floats, or one that stands for all.
struct TileOperand {
  const float* data;
  bool scalar;
};

/// dst[i] = function(arguments…) for i in [0, n). dst may be one of the arguments.
void tile_apply(ScalarFunction function, const TileOperand* arguments, float* dst, std::int64_t n);

/// dst[i] = float(src[i·stride]); the stride in elements. Of f32, bf16, i32 and u8.
void tile_load(DType type, const std::byte* src, std::int64_t stride, float* dst, std::int64_t n);

/// dst[i] = src[i] as `type`: rounded to the nearest for bf16, toward zero and limited to its range for integers,
/// whose least number NaN becomes.
void tile_store(const TileOperand& src, DType type, std::byte* dst, std::int64_t n);

}  // namespace concord::cpu
