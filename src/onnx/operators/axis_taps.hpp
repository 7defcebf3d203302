// The rules by which Resize of ONNX finds source positions and weights along one axis. Internal to the room.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace concord::onnx {

struct ResizeRule {
  std::string mode = "nearest";  // "linear", "cubic"
  std::string coordinates = "half_pixel";
  std::string nearest = "round_prefer_floor";
  float cubic_coefficient = -0.75F;
  bool exclude_outside = false;
  bool antialias = false;
};

/// Result j is Σ weight[t]·source[place[t]] over t in [begin[j], begin[j+1]).
struct AxisTaps {
  std::int64_t src = 0;
  std::vector<std::int32_t> begin = {0}, place = {};
  std::vector<float> weight = {};
  std::vector<bool> outside = {};  // results that lie outside of the source, only for tf_crop_and_resize
  [[nodiscard]] std::int64_t dst() const { return static_cast<std::int64_t>(begin.size()) - 1; }
  [[nodiscard]] bool has_outside() const;
};

/// One axis of `src` elements becomes one of `dst`. `scale` is dst/src or what the file gives; [first, last] is the
/// region of tf_crop_and_resize, as parts of the axis. Throws NotSupported for an unknown rule.
[[nodiscard]] AxisTaps axis_taps(const ResizeRule& rule, std::int64_t src, std::int64_t dst, double scale, double first,
                                 double last);

}  // namespace concord::onnx
