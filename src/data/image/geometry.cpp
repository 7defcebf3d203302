// The part of an image that becomes the result, and functions of numbers that are the same on every machine.
#include "concord/data/image/geometry.hpp"

#include <algorithm>
#include <cmath>

#include "concord/data/image/draw.hpp"

namespace concord::data {
namespace {

constexpr double kHalfTurn = 3.14159265358979323846;

struct ResizedSides {
  std::int64_t height = 0, width = 0;
};

/// Just covers a rectangle of the result's ratio whose shorter side is resized().
ResizedSides resized_sides(const ImageTransform& transform, std::int64_t height, std::int64_t width) {
  const std::int64_t shorter = std::min(transform.height, transform.width), resize = transform.resized();
  const std::int64_t covered_height = (transform.height * resize + shorter / 2) / shorter;
  const std::int64_t covered_width = (transform.width * resize + shorter / 2) / shorter;
  if (width * covered_height >= height * covered_width) return {covered_height, width * covered_height / height};
  return {height * covered_width / width, covered_width};
}

/// (size − part)/2, halves to even as Python rounds them.
std::int64_t centred_place(std::int64_t size, std::int64_t part) {
  const std::int64_t twice = size - part, down = twice >= 0 ? twice / 2 : -((1 - twice) / 2);
  return twice % 2 != 0 && down % 2 != 0 ? down + 1 : down;
}

/// One axis of a cut.
struct CutSide {
  double begin = 0, length = 0;      // of the box
  std::int64_t size = 0;             // that it is resized to
  std::int64_t first = 0, kept = 0;  // of the resized box
  std::int64_t place = 0;            // in the result
};

/// `size` pixels from `first`, some of which may be outside, of an axis of `image` pixels that becomes `resized` long.
CutSide cut_side(std::int64_t first, std::int64_t size, std::int64_t image, std::int64_t resized) {
  const std::int64_t begin = std::clamp<std::int64_t>(first, 0, resized);
  const std::int64_t end = std::clamp<std::int64_t>(first + size, 0, resized);
  // What resizing the whole image would give: the filter reaches a pixel of the result, or of the image, to each side.
  std::int64_t margin = 0;
  if (image != resized) margin = std::max<std::int64_t>(1, (resized + image - 1) / image);
  const std::int64_t wide_begin = std::max<std::int64_t>(begin - margin, 0);
  const std::int64_t wide_end = std::min(end + margin, resized);
  const double scale = static_cast<double>(image) / static_cast<double>(resized);
  CutSide side;
  side.begin = static_cast<double>(wide_begin) * scale;
  side.length = std::min(static_cast<double>(wide_end - wide_begin) * scale, static_cast<double>(image) - side.begin);
  side.size = wide_end - wide_begin;
  side.first = begin - wide_begin, side.kept = end - begin;
  side.place = begin - first;
  return side;
}

Cut central_cut(const ImageTransform& transform, std::int64_t height, std::int64_t width, const SampleRandom& random) {
  const ResizedSides resized = resized_sides(transform, height, width);
  std::int64_t top = centred_place(resized.height, transform.height);
  std::int64_t left = centred_place(resized.width, transform.width);
  if (const std::int64_t most = transform.augmentation.crop; most > 0) {
    Draws draws(random, "image.crop");
    top += draws.below(2 * most + 1) - most;
    left += draws.below(2 * most + 1) - most;
  }
  const CutSide down = cut_side(top, transform.height, height, resized.height);
  const CutSide across = cut_side(left, transform.width, width, resized.width);
  Cut cut;
  cut.box = {across.begin, down.begin, across.length, down.length};
  cut.height = down.size, cut.width = across.size;
  cut.kept = {down.first, across.first, down.kept, across.kept};
  cut.top = down.place, cut.left = across.place;
  return cut;
}

Cut random_resized_cut(const ImageTransform& transform, std::int64_t height, std::int64_t width,
                       const SampleRandom& random) {
  const RandomResizedCrop& crop = *transform.augmentation.resized_crop;
  constexpr double kLogRatio = 0.28768207245178090;  // ln(4/3)
  constexpr int kTries = 10;
  const double usual = static_cast<double>(transform.width) / static_cast<double>(transform.height);
  const double rows = static_cast<double>(height), columns = static_cast<double>(width);
  Draws draws(random, "image.rrc");
  const auto whole = [&](std::int64_t y, std::int64_t x, std::int64_t h, std::int64_t w) {
    const Box box{static_cast<double>(x), static_cast<double>(y), static_cast<double>(w), static_cast<double>(h)};
    return Cut{box, transform.height, transform.width, {0, 0, transform.height, transform.width}, 0, 0};
  };
  for (int i = 0; i < kTries; ++i) {
    const double area = rows * columns * draws.between(crop.smallest, crop.largest);
    const double ratio = usual * exponential(draws.between(-kLogRatio, kLogRatio));
    const auto h = static_cast<std::int64_t>(std::sqrt(area / ratio) + 0.5);
    const auto w = static_cast<std::int64_t>(std::sqrt(area * ratio) + 0.5);
    if (h < 1 || w < 1 || h > height || w > width) continue;
    const std::int64_t y = draws.below(height - h + 1), x = draws.below(width - w + 1);
    return whole(y, x, h, w);
  }
  // The centre, as much of it as the ratios allow.
  std::int64_t h = height, w = width;
  if (columns < rows * usual * 0.75) {
    h = std::clamp<std::int64_t>(static_cast<std::int64_t>(columns / (usual * 0.75) + 0.5), 1, height);
  } else if (columns * 3 > rows * usual * 4) {
    w = std::clamp<std::int64_t>(static_cast<std::int64_t>(rows * usual * 4 / 3 + 0.5), 1, width);
  }
  return whole((height - h) / 2, (width - w) / 2, h, w);
}

}  // namespace

Cut choose_cut(const ImageTransform& transform, std::int64_t height, std::int64_t width, const SampleRandom& random) {
  if (transform.augmentation.resized_crop) return random_resized_cut(transform, height, width, random);
  return central_cut(transform, height, width, random);
}

Window window_of(const Cut& cut) {
  const auto x = static_cast<std::int64_t>(cut.box.x), y = static_cast<std::int64_t>(cut.box.y);
  return {x, y, static_cast<std::int64_t>(std::ceil(cut.box.x + cut.box.width)) - x,
          static_cast<std::int64_t>(std::ceil(cut.box.y + cut.box.height)) - y};
}

SineCosine sine_cosine(double degrees) {
  const double quarters = std::floor(degrees / 90 + 0.5);
  const double x = (degrees - quarters * 90) * (kHalfTurn / 180), square = x * x;  // |x| <= π/4
  double sine = 1, cosine = 1;
  for (int i = 16; i >= 2; i -= 2) {
    cosine = 1 - square / (i * (i - 1)) * cosine;
    sine = 1 - square / (i * (i + 1)) * sine;
  }
  sine *= x;
  switch (static_cast<int>(quarters) & 3) {
    case 0: return {sine, cosine};
    case 1: return {cosine, -sine};
    case 2: return {-sine, -cosine};
    default: return {-cosine, sine};
  }
}

double exponential(double x) {
  double result = 1;
  const double part = x / 16;  // |part| <= 1/2
  for (int i = 14; i >= 1; --i) result = 1 + part / i * result;
  for (int i = 0; i < 4; ++i) result *= result;
  return result;
}

}  // namespace concord::data
