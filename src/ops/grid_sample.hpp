// Grid sample: values of an image or a volume at given places between its pixels, as in spatial transformers (Jaderberg
// et al., "Spatial Transformer Networks", 2015). Made of gathers and pointwise operators.
#pragma once

#include "concord/core/export.hpp"
#include "concord/graph/graph.hpp"

namespace CONCORD_PUBLIC concord {

enum class GridInterpolation : std::uint8_t { bilinear, nearest, bicubic };
/// What a place outside the image reads: 0, the nearest pixel of the border, or the place mirrored at the border.
enum class GridPadding : std::uint8_t { zeros, border, reflection };

struct GridSampleOptions {
  GridInterpolation mode = GridInterpolation::bilinear;  // trilinear of volumes; bicubic of images only
  GridPadding padding = GridPadding::zeros;
  bool align_corners = false;  // −1 and 1 are the centres of the first and last pixel, else their outer edges
};

/// x (N, C, H, W) and grid (N, P, Q, 2) of places (x, y) → (N, C, P, Q); x (N, C, D, H, W) and grid (N, O, P, Q, 3) of
/// places (x, y, z) → (N, C, O, P, Q). As torch.nn.functional.grid_sample: places are in [−1, 1], and outside it
/// `padding` counts. A place that is NaN reads as −1. Both operands have gradients (of `nearest` the grid's is 0), and
/// their order of summation is fixed. Each of the 4, 8 or 16 pixels around a place is gathered by itself, so it takes
/// as many reads of x and as many times the memory of the result. Throws ShapeError, ArgumentError, and NotSupported
/// where an image has more than 2^24 pixels.
Value grid_sample(Value x, Value grid, const GridSampleOptions& options = {});

}  // namespace concord
