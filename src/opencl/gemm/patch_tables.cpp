// Tables of taps and positions. Along an axis a tap sits at `tap` and a position at `place`, in fractions of a pixel
// (1/step). Their sum is a pixel if it is a multiple of step; the pixel is floor(place / step) + ceil(tap / step).
#include "concord/opencl/gemm/patch_tables.hpp"

#include <cstddef>
#include <limits>

namespace concord::opencl {
namespace {

constexpr std::size_t kMostBits = 31;
constexpr std::int64_t kMostEntries = std::int64_t{1} << 20;

std::int64_t floor_divide(std::int64_t a, std::int64_t b) { return a >= 0 ? a / b : -((b - 1 - a) / b); }
std::int64_t ceil_divide(std::int64_t a, std::int64_t b) { return -floor_divide(-a, b); }

/// Slice, row and column of the i-th index of a block.
std::array<std::int64_t, 3> coordinates_of(const PatchPart& part, std::int64_t i) {
  return {i / part.page, i % part.page / part.line, i % part.line};
}

class Tables {
 public:
  Tables(const Patch& patch, const PatchPart& taps, const PatchPart& places)
      : patch_(patch),
        taps_(taps),
        places_(places),
        kernel_{taps.block / taps.page, taps.page / taps.line, taps.line} {}

  [[nodiscard]] bool fit() const {
    return static_cast<std::size_t>(kernel_[0] + kernel_[1] + kernel_[2]) <= kMostBits && places_.block <= kMostEntries;
  }

  [[nodiscard]] PatchEntry tap(std::int64_t i) const {
    const auto at = coordinates_of(taps_, i % taps_.block);
    std::array<std::int64_t, 3> pixel{};
    std::uint32_t bits = 0;
    std::int64_t first_bit = 0;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      pixel[axis] = ceil_divide(at[axis] * taps_.move[axis], patch_.step[axis]);
      bits |= 1U << (first_bit + at[axis]);
      first_bit += kernel_[axis];
    }
    return entry(i / taps_.block * taps_.plane, pixel, bits);
  }

  [[nodiscard]] PatchEntry place(std::int64_t i) const {
    const auto at = coordinates_of(places_, i);
    std::array<std::int64_t, 3> pixel{};
    std::uint32_t bits = 0;
    std::int64_t bit = 0;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const std::int64_t from = at[axis] * places_.move[axis] + patch_.shift[axis], step = patch_.step[axis];
      pixel[axis] = floor_divide(from, step);
      for (std::int64_t tap = 0; tap < kernel_[axis]; ++tap, ++bit) {
        const std::int64_t sum = from + tap * taps_.move[axis];
        const bool inside = sum >= 0 && sum % step == 0 && sum / step < patch_.size[axis];
        bits |= static_cast<std::uint32_t>(inside) << bit;
      }
    }
    return entry(0, pixel, bits);
  }

 private:
  [[nodiscard]] PatchEntry entry(std::int64_t plane, const std::array<std::int64_t, 3>& pixel,
                                 std::uint32_t bits) const {
    const std::int64_t at = plane + (pixel[0] * patch_.size[1] + pixel[1]) * patch_.size[2] + pixel[2];
    return {static_cast<std::int32_t>(at), static_cast<std::int32_t>(bits)};
  }

  const Patch& patch_;
  const PatchPart &taps_, &places_;
  std::array<std::int64_t, 3> kernel_;
};

/// The index (k or n) that walks over the taps, and its length.
struct Sides {
  const PatchPart &taps, &places;
  std::int64_t count;  // of taps
};
Sides sides_of(const Gemm& gemm) {
  const Patch& patch = gemm.patch;
  return gemm.b.along_k ? Sides{patch.n, patch.k, gemm.n} : Sides{patch.k, patch.n, gemm.k};
}

}  // namespace

bool has_patch_tables(const Gemm& gemm) {
  if (gemm.largest > std::numeric_limits<std::int32_t>::max()) return false;  // kernels add entries up in 32 bits
  const Sides sides = sides_of(gemm);
  return sides.count <= kMostEntries && Tables(gemm.patch, sides.taps, sides.places).fit();
}

PatchTables patch_tables(const Gemm& gemm) {
  const Sides sides = sides_of(gemm);
  const Tables tables(gemm.patch, sides.taps, sides.places);
  PatchTables result{{}, {}, sides.places.block, sides.places.plane};
  for (std::int64_t i = 0; i < sides.count; ++i) result.taps.push_back(tables.tap(i));
  for (std::int64_t i = 0; i < sides.places.block; ++i) result.places.push_back(tables.place(i));
  return result;
}

}  // namespace concord::opencl
