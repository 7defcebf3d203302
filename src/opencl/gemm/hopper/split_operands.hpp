// Matrix multiplications as gemm/hopper/tma.cl reads them: the values that represent a factor, the walk over the right
// operand, the memory of the packed operands, and the supported problems. A plane holds an operand with k inside, or
// with the channels inside where k are the positions of an image.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "concord/opencl/gemm/hopper/tensor_map.hpp"
#include "concord/opencl/gemm/problem.hpp"

namespace concord::opencl {

/// How the factors of a matrix multiplication are represented.
struct PlaneNumbers {
  MapNumber number;
  std::int64_t planes;                   // that together represent one factor
  std::vector<std::string> definitions;  // of the kernels
  std::int64_t multiplied_planes;        // planes of a factor that the kernel reads
  std::int64_t products;                 // products of planes that replace one product
  /// Bytes of a factor in one plane, and in all.
  [[nodiscard]] std::int64_t bytes() const { return bytes_of(number); }
  [[nodiscard]] std::int64_t bytes_of_all() const { return planes * bytes(); }
  /// Factors in 16 bytes of a plane.
  [[nodiscard]] std::int64_t block() const { return 16 / bytes(); }
};
/// fp32 is represented by three bf16 values. In a scaled problem, two fp16 values represent fp32 and one represents
/// tf32; there is space for three bf16 values, the fallback of the kernels where magnitudes are too mixed.
[[nodiscard]] PlaneNumbers plane_numbers(const Gemm& gemm);
[[nodiscard]] inline bool can_be_scaled(const Gemm& gemm) {
  return gemm.precision == Precision::fp32 || gemm.precision == Precision::tf32;
}

/// The form of the right operand: a dense matrix, the patches of an image with taps and channels as k, or the patches
/// with positions as k.
struct PlaneForm {
  enum class Kind : std::uint8_t { matrix, image, image_turned } kind;
  std::int64_t rows;            // right lines, padding included
  std::int64_t tiles_k;         // tiles of k
  std::int64_t channel_tiles;   // of an image: tiles (blocks of 64 when turned) of a tap's channels; otherwise 1
  std::int64_t images;          // of an image; otherwise 1
  std::int64_t taps, channels;  // of an image; otherwise 1 and k

  /// RIGHT of gemm/hopper/tma.cl.
  [[nodiscard]] std::string_view definition() const;
  /// The strides of a result whose columns are in the order (tap, channel) instead of (channel, tap).
  [[nodiscard]] GemmResult channels_first(const GemmResult& c) const;
};
[[nodiscard]] PlaneForm plane_form(const Gemm& gemm, std::int64_t tile_k);

/// Whether the copy engine supports the operands, and the planes (of the slices, where there are any) are not too
/// large.
[[nodiscard]] bool supports_packing(const Gemm& gemm);

/// The problem, or, where its planes would need too much memory and it can be cut, problems for slices of its rows.
[[nodiscard]] std::vector<Gemm> plane_slices(const Gemm& gemm);

/// The box of a copy: lines of the right and the left operand, and bytes of their inner index.
struct PlaneBox {
  std::int64_t rows, columns, row_bytes;
};

/// Elements of a plane of each operand, padding included; 0 for an operand that is channels-last or filters, which is
/// not packed here.
struct PlaneSizes {
  std::int64_t right, left;
};
[[nodiscard]] PlaneSizes plane_sizes(const Gemm& gemm, const PlaneForm& form, const PlaneBox& box);

/// The image whose patches are the right operand, and the positions of taps on it. The Gemm must outlive it.
class ImageWalk {
 public:
  explicit ImageWalk(const Gemm& gemm)
      : patch_(gemm.patch),
        taps_(gemm.b.along_k ? gemm.patch.n : gemm.patch.k),
        places_(gemm.b.along_k ? gemm.patch.k : gemm.patch.n),
        tap_index_(gemm.b.along_k ? gemm.n : gemm.k),
        place_index_(gemm.b.along_k ? gemm.k : gemm.n) {}

  [[nodiscard]] std::int64_t taps() const { return taps_.block; }
  [[nodiscard]] std::int64_t channels() const { return tap_index_ / taps_.block; }
  [[nodiscard]] std::int64_t images() const { return place_index_ / places_.block; }
  [[nodiscard]] std::int64_t rows() const { return patch_.size[1]; }
  [[nodiscard]] std::int64_t columns() const { return patch_.size[2]; }
  [[nodiscard]] std::int64_t channel_stride() const { return taps_.plane; }
  [[nodiscard]] std::int64_t image_stride() const { return places_.plane; }
  [[nodiscard]] bool moves_backward() const { return taps_.move[1] < 0 || taps_.move[2] < 0; }

  /// The box of a copy of so many channels and positions.
  [[nodiscard]] MapPlaces map_places(std::int64_t channels, std::int64_t places) const;
  /// Whether the kernel's walk supports the patches: an image without depth, whole pixels, taps in one direction.
  [[nodiscard]] bool is_plain() const;

 private:
  const Patch& patch_;
  const PatchPart &taps_, &places_;
  std::int64_t tap_index_, place_index_;
};

/// Sizes and strides of an image in `planes` planes.
class ImagePlanes {
 public:
  ImagePlanes(const Gemm& gemm, const ImageWalk& walk, std::int64_t planes);
  [[nodiscard]] MapTensor tensor() const { return {numbers_.number, sizes_, strides_}; }

 private:
  PlaneNumbers numbers_;
  std::array<std::int64_t, 4> sizes_{};
  std::array<std::int64_t, 3> strides_{};
};

/// Channels per copy of an operand with the channels inside and the positions as k.
inline constexpr std::int64_t kChannelBlock = 64;

/// Expected time of packing.
[[nodiscard]] double pack_seconds(const Gemm& gemm);

}  // namespace concord::opencl
