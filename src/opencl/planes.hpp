// Operands of a product packed into planes of small numbers for the copy engine: what gemm_tma.cl reads. A plane holds
// an operand with k (or, where k are the places of an image, the channels) inside; fp32 takes three planes of bf16.
#pragma once

#include <cstdint>
#include <string_view>

#include "concord/opencl/gemm.hpp"
#include "concord/opencl/tensor_map.hpp"

namespace concord::opencl {

/// How the factors of a product are written.
struct PlaneNumbers {
  MapNumber number;
  std::int64_t planes;          // that stand for one factor together
  std::string_view definition;  // PRECISION of the kernels
  /// Bytes of a factor in one plane, and in all.
  [[nodiscard]] std::int64_t bytes() const { return bytes_of(number); }
  [[nodiscard]] std::int64_t bytes_of_all() const { return planes * bytes(); }
  /// Factors in 16 bytes of a plane.
  [[nodiscard]] std::int64_t block() const { return 16 / bytes(); }
};
/// fp32 is written as three bf16 numbers. So is tf32, as two, where the places of an image are k: the units read
/// numbers of 32 bits with k inside alone.
[[nodiscard]] PlaneNumbers plane_numbers(const Gemm& gemm);

/// How a product is walked: its right operand is a dense matrix, the patches of an image whose taps and channels are k,
/// or those whose places are k.
struct PlaneForm {
  enum class Kind : std::uint8_t { matrix, image, image_turned } kind;
  std::int64_t rows;            // right lines, padding included
  std::int64_t tiles_k;         // tiles of k
  std::int64_t channel_tiles;   // of an image: tiles (blocks of 64 when turned) of a tap's channels; otherwise 1
  std::int64_t images;          // of an image; otherwise 1
  std::int64_t taps, channels;  // of an image; otherwise 1 and k

  /// RIGHT of gemm_tma.cl.
  [[nodiscard]] std::string_view definition() const;
  /// The places of a result whose columns come as (tap, channel) instead of (channel, tap).
  [[nodiscard]] GemmResult channels_first(const GemmResult& c) const;
};
[[nodiscard]] PlaneForm plane_form(const Gemm& gemm, std::int64_t tile_k);

/// Whether the copy engine can bring the product's operands, and the planes, of slices where there are some, are of a
/// reasonable size.
[[nodiscard]] bool planes_serve(const Gemm& gemm);

/// The product, or where its planes would take too much memory and it can be cut, products of slices of its rows.
[[nodiscard]] std::vector<Gemm> plane_slices(const Gemm& gemm);

/// Expected time of packing.
[[nodiscard]] double pack_seconds(const Gemm& gemm);

/// What of the operands a copy brings: lines of the right and the left operand, and bytes of their inner index.
struct PlaneBox {
  std::int64_t rows, columns, row_bytes;
};
/// Adds to gemm.before the stages that pack both operands into the workspace and write their tensor maps; the place of
/// the maps, the left one first.
[[nodiscard]] BufferArgument pack_planes(Context& context, Gemm& gemm, const PlaneForm& form, const PlaneBox& box);

}  // namespace concord::opencl
