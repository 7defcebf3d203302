// The inner loops of pooling over one image (slices, rows, columns, lanes), vectorised over the lanes. Used by pool.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace concord::cpu {

/// The windows along one dimension of space.
struct PoolAxis {
  std::int64_t src, dst;
  std::int64_t kernel, stride, padding, dilation;
  bool adaptive;  // `dst` windows of nearly equal size instead

  /// The first pixel of window `o`, which may lie before the image, and the one behind its last.
  [[nodiscard]] std::int64_t begin(std::int64_t o) const { return adaptive ? o * src / dst : o * stride - padding; }
  [[nodiscard]] std::int64_t end(std::int64_t o) const {
    return adaptive ? ((o + 1) * src + dst - 1) / dst : begin(o) + dilation * (kernel - 1) + 1;
  }
  /// Windows meet every pixel exactly once.
  [[nodiscard]] bool tiles_exactly() const {
    return !adaptive && kernel == stride && padding == 0 && dilation == 1 && src == dst * kernel;
  }
};

struct PoolImages {
  std::int64_t images, lanes;    // lanes of one pixel are neighbours in memory
  std::array<PoolAxis, 3> axes;  // depth, height, width
  bool count_padding;            // average over the window's whole size within the padded image
  std::int64_t divisor;          // or over this, when it is not 0

  [[nodiscard]] std::int64_t src_elements() const { return axes[0].src * axes[1].src * axes[2].src * lanes; }
  [[nodiscard]] std::int64_t dst_elements() const { return axes[0].dst * axes[1].dst * axes[2].dst * lanes; }
  [[nodiscard]] bool tiles_exactly() const {
    return std::ranges::all_of(axes, [](const PoolAxis& axis) { return axis.tiles_exactly(); });
  }
};

/// src (d, h, w, lanes) → dst, indices (od, oh, ow, lanes): places of pixels in the image.
void pool_max_forward(const PoolImages& s, const float* src, float* dst, std::int32_t* indices);
/// diff_dst, indices (od, oh, ow, lanes) → diff_src (d, h, w, lanes).
void pool_max_backward(const PoolImages& s, const float* diff_dst, const std::int32_t* indices, float* diff_src);
void pool_avg_forward(const PoolImages& s, const float* src, float* dst);
void pool_avg_backward(const PoolImages& s, const float* diff_dst, float* diff_src);

}  // namespace concord::cpu
