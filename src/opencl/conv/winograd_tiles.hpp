// What the passes by Winograd's transforms share (winograd.cpp, winograd_weights.cpp): tiles, slices of them,
// launches of cl_kernels/conv/winograd.cl, and the time that all that should take.
#pragma once

#include <string>
#include <vector>

#include "concord/opencl/gemm/problem.hpp"
#include "concord/opencl/launch/sizes.hpp"

namespace concord::opencl {

/// A tile is 4x4 results, or slopes of results, and the 6x6 pixels they depend on; it has 36 points.
inline constexpr std::int64_t kWinogradTile = 4, kWinogradPoints = 36;

/// The tiles of n images.
struct WinogradTiles {
  std::int64_t n, rows, columns;  // of results
  [[nodiscard]] std::int64_t in_row() const { return divide_up(columns, kWinogradTile); }
  [[nodiscard]] std::int64_t in_image() const { return in_row() * divide_up(rows, kWinogradTile); }
  [[nodiscard]] std::int64_t count() const { return n * in_image(); }
};

/// `count` tiles from `first` on, which are taken together; `pitch` of them, a multiple of 4, have a place.
struct WinogradSlice {
  std::int64_t first, count, pitch;
};
/// All tiles, of which `channels` are at their points in the workspace at a time: the first slice is the largest.
[[nodiscard]] std::vector<WinogradSlice> winograd_slices(const Context& context, const WinogradTiles& tiles,
                                                         std::int64_t channels);

/// What an image's tiles are cut from: its channels, rows and columns of pixels, and where the first tile begins.
struct WinogradImage {
  BufferArgument buffer;
  std::int64_t channels, rows, columns, first_row, first_column;
};
/// Writes an image's tiles at their points, (36, channels, pitch), to `points`. `function` is winograd_pixels or
/// winograd_slopes.
[[nodiscard]] Stage winograd_points_stage(Context& context, const std::string& function, const WinogradImage& image,
                                          const WinogradTiles& tiles, const WinogradSlice& slice,
                                          const BufferArgument& points);

/// Appends the numbers of TILE_PARAMETERS.
void add_winograd_tiles(std::vector<Argument>& arguments, const WinogradTiles& tiles, const WinogradSlice& slice);
/// `items` neighbours in work-groups, and `others` beside them.
[[nodiscard]] Stage winograd_stage(const Context& context, PendingProgram program, std::string function,
                                   std::vector<Argument> arguments, std::int64_t items, std::int64_t others);
/// What a kernel with this product is called.
[[nodiscard]] std::string winograd_name(const Kernel& product, std::size_t slices);
/// Elements from one point's matrix, of so many numbers, to the next one's. A few are left unused: what an item writes
/// at all points must not lie at a distance of a power of two, for which caches have few places.
[[nodiscard]] constexpr std::int64_t winograd_point_stride(std::int64_t numbers) { return round_up(numbers, 16) + 80; }
/// Bytes of the matrices of all points: a multiple of 256.
[[nodiscard]] constexpr std::size_t winograd_bytes(std::int64_t numbers) {
  return static_cast<std::size_t>(kWinogradPoints * winograd_point_stride(numbers)) * sizeof(float);
}

/// The parts of a pass that take time: its matrix multiplications, and the transforms before and after them.
struct WinogradWork {
  std::vector<Gemm> products;
  std::int64_t transformed;  // floats
};
/// The time that it is expected to take.
[[nodiscard]] double winograd_seconds(Context& context, const WinogradWork& work);

}  // namespace concord::opencl
