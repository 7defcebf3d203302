// AxisMap: which places of an axis of the source make up each place of an axis of the result, and with which weights.
// Interpolation, padding by reflection, repetition, reversal and blurring are such maps. Used by resample.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "concord/core/export.hpp"

namespace CONCORD_PUBLIC concord {
namespace ops {

struct AxisMap {
  enum class Kind : std::uint8_t {
    nearest,    // the place floor(step·j), in float as PyTorch computes it
    linear,     // between the two places around the coordinate of j
    cubic,      // among the four around it (Keys, "Cubic Convolution Interpolation", 1981, a = −0.75)
    reflect,    // j − count, mirrored at the first and last place, which are not repeated
    replicate,  // j − count, limited to the source
    circular,   // j − count, modulo the size of the source
    repeat,     // j / count
    flip,       // from the last to the first
    gaussian,   // the mean over a window of `count` places with the weights of a normal distribution of deviation
                // `step`; at the borders over the part inside
  };
  Kind kind = Kind::nearest;
  std::int64_t src = 1, dst = 1;  // sizes of the axis
  std::int64_t count = 0;         // see the kinds
  double step = 1;                // places of the source a place of the result; deviation of gaussian
  bool align_corners = false;     // linear, cubic: the coordinate of j is step·j, otherwise step·(j + 1/2) − 1/2
  bool transposed = false;        // the matrix transposed: from `dst` places to `src`, for the gradient

  /// Sizes of the axis as this map takes and gives it.
  [[nodiscard]] std::int64_t taken() const { return transposed ? dst : src; }
  [[nodiscard]] std::int64_t given() const { return transposed ? src : dst; }
  [[nodiscard]] AxisMap transpose() const;
  [[nodiscard]] std::string str() const;
};

/// The map as a sparse matrix by rows: result j = Σ weight[t]·source[place[t]] over t in [begin[j], begin[j+1]).
struct Taps {
  std::vector<std::int32_t> begin, place;
  std::vector<float> weight;
};
[[nodiscard]] Taps taps_of(const AxisMap& map);

}  // namespace ops
}  // namespace concord
