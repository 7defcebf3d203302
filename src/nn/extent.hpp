// Extent and Padding: sizes along the spatial dimensions, as one number for all dimensions or one for each.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "concord/core/export.hpp"

namespace CONCORD_PUBLIC concord {
namespace nn {

/// One number for each spatial dimension, outermost first. A single number applies to all dimensions.
template <std::size_t Rank>
class Extent {
 public:
  using Sizes = std::array<std::int64_t, Rank>;

  Extent(std::int64_t all) { sizes_.fill(all); }  // NOLINT(google-explicit-constructor)
  Extent(const Sizes& sizes) : sizes_(sizes) {}   // NOLINT(google-explicit-constructor)
  Extent(std::int64_t rows, std::int64_t columns) requires(Rank == 2) : sizes_{rows, columns} {}
  Extent(std::int64_t depth, std::int64_t rows, std::int64_t columns) requires(Rank == 3)
      : sizes_{depth, rows, columns} {}

  operator Sizes() const { return sizes_; }  // NOLINT(google-explicit-constructor)
  [[nodiscard]] const Sizes& sizes() const { return sizes_; }
  [[nodiscard]] std::int64_t operator[](std::size_t axis) const { return sizes_[axis]; }

 private:
  Sizes sizes_;
};
/// Rows and columns.
using Pair = Extent<2>;

/// Padding that keeps the size of the input in a convolution with stride 1. If the total is odd, the larger part comes
/// last. PyTorch's padding='same'.
struct Same {};
inline constexpr Same same{};

/// The pixels added on each side of each spatial dimension.
template <std::size_t Rank>
class Padding {
 public:
  using Sizes = std::array<std::int64_t, Rank>;

  /// The same on both sides.
  Padding(std::int64_t all) : Padding(Extent<Rank>(all)) {}           // NOLINT(google-explicit-constructor)
  Padding(const Extent<Rank>& both) : before_(both), after_(both) {}  // NOLINT(google-explicit-constructor)
  Padding(Same) : Padding(0) { same_ = true; }                        // NOLINT(google-explicit-constructor)
  Padding(std::int64_t rows, std::int64_t columns) requires(Rank == 2) : Padding(Extent<Rank>(rows, columns)) {}
  Padding(std::int64_t depth, std::int64_t rows, std::int64_t columns) requires(Rank == 3)
      : Padding(Extent<Rank>(depth, rows, columns)) {}
  /// Other numbers of pixels before the first and after the last.
  [[nodiscard]] static Padding before_after(const Extent<Rank>& before, const Extent<Rank>& after) {
    Padding padding(before);
    padding.after_ = after;
    return padding;
  }

  [[nodiscard]] bool is_same() const { return same_; }
  [[nodiscard]] Sizes before(const Extent<Rank>& kernel, const Extent<Rank>& dilation) const {
    Sizes sizes = before_;
    for (std::size_t i = 0; i < Rank && same_; ++i) sizes[i] = dilation[i] * (kernel[i] - 1) / 2;
    return sizes;
  }
  [[nodiscard]] Sizes after(const Extent<Rank>& kernel, const Extent<Rank>& dilation) const {
    Sizes sizes = after_;
    for (std::size_t i = 0; i < Rank && same_; ++i) sizes[i] = (dilation[i] * (kernel[i] - 1) + 1) / 2;
    return sizes;
  }

 private:
  Extent<Rank> before_, after_;
  bool same_ = false;
};

}  // namespace nn
}  // namespace concord
