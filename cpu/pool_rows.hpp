// The inner loops of pooling over one image (rows, columns, lanes), vectorised over the lanes. Used by pool.
#pragma once

#include <algorithm>
#include <cstdint>

namespace concord::cpu {

struct PoolImages {
  std::int64_t images, lanes;  // lanes of one pixel are neighbours in memory
  std::int64_t h, w, oh, ow;
  std::int64_t kh, kw, sh, sw, ph, pw;
  bool count_padding;  // average over the window's whole size within the padded image

  [[nodiscard]] std::int64_t src_elements() const { return h * w * lanes; }
  [[nodiscard]] std::int64_t dst_elements() const { return oh * ow * lanes; }
  /// Windows meet every pixel exactly once.
  [[nodiscard]] bool tiles_exactly() const {
    return kh == sh && kw == sw && ph == 0 && pw == 0 && h == oh * kh && w == ow * kw;
  }
};

/// src (h, w, lanes) → dst, argmax (oh, ow, lanes).
void pool_max_forward(const PoolImages& s, const float* src, float* dst, std::int32_t* argmax);
/// diff_dst, argmax (oh, ow, lanes) → diff_src (h, w, lanes).
void pool_max_backward(const PoolImages& s, const float* diff_dst, const std::int32_t* argmax, float* diff_src);
void pool_avg_forward(const PoolImages& s, const float* src, float* dst);
void pool_avg_backward(const PoolImages& s, const float* diff_dst, float* diff_src);

}  // namespace concord::cpu
