// Products as gemm/hopper/tma.cl reads them: which numbers stand for a factor, how the right operand is walked, how
// much the packed operands take, and which products can be told so. A plane holds an operand with k (or, where k are
// the places of an image, the channels) inside.
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

/// How the factors of a product are written.
struct PlaneNumbers {
  MapNumber number;
  std::int64_t planes;                   // that stand for one factor together
  std::vector<std::string> definitions;  // of the kernels
  std::int64_t multiplied_planes;        // planes of a factor that a product reads, products that then stand for one
  std::int64_t products;
  /// Bytes of a factor in one plane, and in all.
  [[nodiscard]] std::int64_t bytes() const { return bytes_of(number); }
  [[nodiscard]] std::int64_t bytes_of_all() const { return planes * bytes(); }
  /// Factors in 16 bytes of a plane.
  [[nodiscard]] std::int64_t block() const { return 16 / bytes(); }
};
/// fp32 is written as three bf16 numbers; where the product says that it is scaled, fp32 as two and tf32 as one fp16
/// number, with room for three bf16 numbers: what the kernels fall back to where magnitudes are too mixed.
[[nodiscard]] PlaneNumbers plane_numbers(const Gemm& gemm);
[[nodiscard]] inline bool can_be_scaled(const Gemm& gemm) {
  return gemm.precision == Precision::fp32 || gemm.precision == Precision::tf32;
}

/// How a product is walked: its right operand is a dense matrix, the patches of an image whose taps and channels are k,
/// or those whose places are k.
struct PlaneForm {
  enum class Kind : std::uint8_t { matrix, image, image_turned } kind;
  std::int64_t rows;            // right lines, padding included
  std::int64_t tiles_k;         // tiles of k
  std::int64_t channel_tiles;   // of an image: tiles (blocks of 64 when turned) of a tap's channels; otherwise 1
  std::int64_t images;          // of an image; otherwise 1
  std::int64_t taps, channels;  // of an image; otherwise 1 and k

  /// RIGHT of gemm/hopper/tma.cl.
  [[nodiscard]] std::string_view definition() const;
  /// The places of a result whose columns come as (tap, channel) instead of (channel, tap).
  [[nodiscard]] GemmResult channels_first(const GemmResult& c) const;
};
[[nodiscard]] PlaneForm plane_form(const Gemm& gemm, std::int64_t tile_k);

/// Whether the copy engine can bring the product's operands, and the planes, of slices where there are some, are of a
/// reasonable size.
[[nodiscard]] bool supports_packing(const Gemm& gemm);

/// The product, or where its planes would take too much memory and it can be cut, products of slices of its rows.
[[nodiscard]] std::vector<Gemm> plane_slices(const Gemm& gemm);

/// What of the operands a copy brings: lines of the right and the left operand, and bytes of their inner index.
struct PlaneBox {
  std::int64_t rows, columns, row_bytes;
};

/// Numbers of a plane of each operand, padding included; 0 of one that lies channels-last, which is not packed.
struct PlaneSizes {
  std::int64_t right, left;
};
[[nodiscard]] PlaneSizes plane_sizes(const Gemm& gemm, const PlaneForm& form, const PlaneBox& box);

/// The image of a product's patches, and where taps and places lie on it. The product must outlive it.
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

  /// What a copy of the engine brings of so many channels and places.
  [[nodiscard]] MapPlaces map_places(std::int64_t channels, std::int64_t places) const;
  /// Whether the kernel's walk is that of the patches: an image without depth, whole pixels, taps in one direction.
  [[nodiscard]] bool is_plain() const;

 private:
  const Patch& patch_;
  const PatchPart &taps_, &places_;
  std::int64_t tap_index_, place_index_;
};

/// Sizes and strides of so many planes of an image.
class ImagePlanes {
 public:
  ImagePlanes(const Gemm& gemm, const ImageWalk& walk, std::int64_t planes);
  [[nodiscard]] MapTensor tensor() const { return {numbers_.number, sizes_, strides_}; }

 private:
  PlaneNumbers numbers_;
  std::array<std::int64_t, 4> sizes_{};
  std::array<std::int64_t, 3> strides_{};
};

/// Of an operand whose channels lie inside and whose places are k: channels of a copy.
inline constexpr std::int64_t kChannelBlock = 64;

/// Expected time of packing.
[[nodiscard]] double pack_seconds(const Gemm& gemm);

}  // namespace concord::opencl
