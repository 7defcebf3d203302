// ImageTransform: what becomes of a decoded image on the way to a network, as values. ImageSamples carries it out; the
// command parses it from --augment. data/image/preprocessing.hpp has the part that belongs to a trained model.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "concord/core/export.hpp"

namespace CONCORD_PUBLIC concord {
namespace data {

/// A random part of the image, resized to the size of the result: its area is a part in [smallest, largest] of the
/// image's, its sides are in a ratio within [3/4, 4/3] of the result's (Szegedy et al., "Going Deeper with
/// Convolutions", 2015; as torchvision, with ten tries).
struct RandomResizedCrop {
  double smallest = 0.08, largest = 1;
  friend bool operator==(const RandomResizedCrop&, const RandomResizedCrop&) = default;
};

/// Turns, moves, scales and shears about the centre, each by a random amount; bilinear.
struct RandomAffine {
  double degrees = 0;                // turned by an angle in [−degrees, degrees]
  double translate = 0;              // moved by a part of height and width in [−translate, translate]
  double smallest = 1, largest = 1;  // scaled by a factor in [smallest, largest]
  double shear = 0;                  // sheared along x by an angle in [−shear, shear] degrees
  friend bool operator==(const RandomAffine&, const RandomAffine&) = default;
};

/// Factors in [max(0, 1 − x), 1 + x] for brightness, contrast and saturation, and hue turned by a part in [−hue, hue]
/// of the whole circle; in random order, as torchvision. Saturation and hue change nothing in a grey image.
struct ColourJitter {
  double brightness = 0, contrast = 0, saturation = 0;
  double hue = 0;  // at most 0.5
  friend bool operator==(const ColourJitter&, const ColourJitter&) = default;
};

/// `operations` random operations, each of strength `magnitude` of 30 (Cubuk et al., "RandAugment", 2019; operations
/// and strengths as torchvision, but bilinear).
struct RandAugment {
  int operations = 2;
  int magnitude = 9;
  friend bool operator==(const RandAugment&, const RandAugment&) = default;
};

/// The random changes of an image in training, in the order in which they are done, whatever the order of their names.
/// Pixels without an image behind them take the mean of the transform, or black.
struct ImageAugmentation {
  std::optional<RandomResizedCrop> resized_crop;  // instead of resizing and cropping the centre
  std::int64_t crop = 0;     // the crop of the centre is moved by up to so many pixels in each direction
  double flip = 0;           // probability of mirroring left to right
  double vertical_flip = 0;  // probability of mirroring top to bottom
  std::optional<RandAugment> rand_augment;
  std::optional<RandomAffine> affine;
  std::optional<ColourJitter> jitter;
  /// A square is covered whose sides are this part of the shorter side and whose centre is anywhere (DeVries and
  /// Taylor, "Cutout", 2017).
  double cutout = 0;
  /// The probability of covering a rectangle of an area in [0.02, 0.33] of the image's and a ratio of sides in
  /// [0.3, 3.3] (Zhong et al., "Random Erasing Data Augmentation", 2020).
  double erase = 0;

  /// Nothing is random.
  [[nodiscard]] bool is_empty() const { return *this == ImageAugmentation(); }
  /// The text that parse_augment reads; "none" if it is empty.
  [[nodiscard]] std::string str() const;
  friend bool operator==(const ImageAugmentation&, const ImageAugmentation&) = default;
};

/// Reads "rrc,flip,jitter=0.4:0.4:0.4:0.1". The names, with their values in square brackets where they may be left out:
///   rrc[=SMALLEST[:LARGEST]]  crop=PIXELS  flip[=P]  vflip[=P]  randaugment[=OPERATIONS[:MAGNITUDE]]
///   rotate=DEGREES  shear=DEGREES  affine=DEGREES[:TRANSLATE[:SMALLEST:LARGEST[:SHEAR]]]
///   jitter=BRIGHTNESS[:CONTRAST[:SATURATION[:HUE]]]  cutout=PART  erase[=P]  none
/// Throws ArgumentError, which names what is wrong and what there is.
[[nodiscard]] ImageAugmentation parse_augment(std::string_view text);

/// From a decoded image to u8 [channels, height, width]. Without augmentation the image is resized (bilinear with
/// antialiasing) until it just covers a rectangle of the ratio height : width whose shorter side is `resize`, and the
/// centre of height × width pixels is taken. For a square that is the shorter side resized to `resize`.
struct ImageTransform {
  std::int64_t height = 224, width = 224;
  std::int64_t resize = 0;    // 0: the shorter side of the result · 256/224, rounded
  std::int64_t channels = 3;  // 3: red, green, blue; 1: grey
  /// For each channel, of values in [0, 1]; or empty. The device applies them (ColumnSpec).
  std::vector<float> mean = {}, deviation = {};
  ImageAugmentation augmentation = {};
  /// What a mask of classes has where no image is behind a pixel: an index that the loss ignores.
  std::uint8_t mask_fill = 255;

  /// `resize`, or what 0 stands for.
  [[nodiscard]] std::int64_t resized() const;
  /// What a pixel of a channel is without an image behind it: the mean, or 0.
  [[nodiscard]] std::uint8_t fill(std::int64_t channel) const;
  /// Throws ArgumentError for the first value that is out of range.
  void check() const;
  friend bool operator==(const ImageTransform&, const ImageTransform&) = default;
};

/// No side of a result is longer, and no image is resized to more.
inline constexpr std::int64_t kLongestSide = 1 << 14;

}  // namespace data
}  // namespace concord
