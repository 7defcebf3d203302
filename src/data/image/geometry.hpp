// Geometry: which part of an image becomes the result, and images that are turned, sheared and moved. Internal to the
// module. Angles and exponentials are computed here and pixels by integers, so that every machine has the same bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "concord/data/image/image.hpp"
#include "concord/data/image/planes.hpp"
#include "concord/data/image/resample.hpp"
#include "concord/data/image/transform.hpp"
#include "concord/data/samples.hpp"

namespace concord::data {

/// A rectangle of whole pixels.
struct CutPart {
  std::int64_t top = 0, left = 0, height = 0, width = 0;
};

/// A part of an image, and where it lies in the result once it is resized.
struct Cut {
  Box box;                             // in pixels of the image, within it
  std::int64_t height = 0, width = 0;  // that `box` is resized to
  CutPart kept;                        // of the resized box: the rest only gave pixels to the filter of its edges
  std::int64_t top = 0, left = 0;      // the place of `kept` in the result
};

/// The part of an image of height × width that becomes the result: the centre, or by the random numbers of the sample.
[[nodiscard]] Cut choose_cut(const ImageTransform& transform, std::int64_t height, std::int64_t width,
                             const SampleRandom& random);

/// The pixels that the box of a cut touches.
[[nodiscard]] Window window_of(const Cut& cut);

/// The point (x, y) of a result shows the point (xx·x + xy·y + x0, yx·x + yy·y + y0) of the source. The centre of the
/// first pixel is (0.5, 0.5).
struct AffineMap {
  double xx = 1, xy = 0, x0 = 0;
  double yx = 0, yy = 1, y0 = 0;
};

/// Turned clockwise by `degrees`, scaled by `scale`, sheared along x by `shear` degrees, all about the centre of an
/// image of height × width, then moved by (right, down) pixels.
[[nodiscard]] AffineMap affine_map(std::int64_t height, std::int64_t width, double degrees, double scale, double shear,
                                   double right, double down);

/// Memory that augmentation reuses.
struct AugmentMemory {
  std::vector<std::uint8_t> source;
};

/// Moves the pixels of an image, bilinear. Pixels whose centre lies outside the image take the fill of the transform.
void warp(const AffineMap& map, const ImageTransform& transform, const Planes& image, AugmentMemory& memory);
/// Nearest neighbour, for masks of one channel.
void warp_nearest(const AffineMap& map, std::uint8_t fill, const Planes& mask, AugmentMemory& memory);
/// Moves an image, and its mask if that has pixels.
void warp(const AffineMap& map, const ImageTransform& transform, const Planes& image, const Planes& mask,
          AugmentMemory& memory);

/// The sine and the cosine of an angle in [−180, 180] degrees, and exp(x) for |x| <= 8: sums of products alone, which
/// no library of mathematics changes.
struct SineCosine {
  double sine = 0, cosine = 1;
};
[[nodiscard]] SineCosine sine_cosine(double degrees);
[[nodiscard]] double exponential(double x);

}  // namespace concord::data
