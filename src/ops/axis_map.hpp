// AxisMap: a linear map of one axis: which source positions, with which weights, give each result position.
// Interpolation, padding by reflection, repetition, reversal and blurring are such maps. resample uses it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "concord/core/export.hpp"

namespace CONCORD_PUBLIC concord {
namespace ops {

/// The map as a sparse matrix by rows: result j = Σ weight[t]·source[place[t]] over t in [begin[j], begin[j+1]).
struct Taps {
  std::vector<std::int32_t> begin, place;
  std::vector<float> weight;
};

struct AxisMap {
  enum class Kind : std::uint8_t {
    nearest,    // source position floor(step·j), computed in float as in PyTorch
    linear,     // between the two positions around the coordinate of j
    cubic,      // from the four positions around it (Keys, "Cubic Convolution Interpolation", 1981, a = −0.75)
    reflect,    // j − count, mirrored at the first and last position, which are not repeated
    replicate,  // j − count, clamped to the source
    circular,   // j − count, modulo the size of the source
    repeat,     // j / count
    flip,       // from the last to the first
    gaussian,   // the mean over `count` positions with Gaussian weights of standard deviation `step`; at the borders
                // the mean over the positions inside
    taps,       // the rows of `table`, see of_taps
    nearest_exact,  // source position floor(step·(j + 1/2)), computed in float as in PyTorch on GPUs
  };
  Kind kind = Kind::nearest;
  std::int64_t src = 1, dst = 1;  // sizes of the axis in the source and the result
  std::int64_t count = 0;         // meaning: see Kind
  /// Source positions per result position; for gaussian, the standard deviation.
  double step = 1;
  bool align_corners = false;  // linear, cubic: the coordinate of j is step·j, else step·(j + 1/2) − 1/2
  bool transposed = false;     // the transposed matrix, from `dst` to `src` positions, for the gradient
  std::shared_ptr<const Taps> table = {};  // taps

  /// Any map, given as the matrix itself: from `src` to `dst` positions. A row without taps gives 0. Throws
  /// ArgumentError if `taps` has not `dst` rows, or a place is outside the source.
  [[nodiscard]] static AxisMap of_taps(std::int64_t src, std::int64_t dst, Taps taps);

  /// The size of the axis in the input and in the output of this map.
  [[nodiscard]] std::int64_t taken() const { return transposed ? dst : src; }
  [[nodiscard]] std::int64_t given() const { return transposed ? src : dst; }
  [[nodiscard]] AxisMap transpose() const;
  /// Equal text means equal map: of taps, it contains the whole table.
  [[nodiscard]] std::string str() const;
};
[[nodiscard]] Taps taps_of(const AxisMap& map);

}  // namespace ops
}  // namespace concord
