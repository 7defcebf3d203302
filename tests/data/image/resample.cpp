// Resampling beside PIL's and beside the sum of a filter; nearest neighbours; planes.
#include "concord/data/image/resample.hpp"

#include <algorithm>
#include <cmath>

#include "codec_files.hpp"
#include "concord/data/image/resample_vectors.hpp"

using namespace concord;
using namespace concord::test;
using data::Box;
using data::Image;

namespace {

// The weights of one pixel of the result, without rounding.
std::vector<double> triangle_weights(double begin, double length, std::int64_t count, std::int64_t i,
                                     std::int64_t size) {
  const double scale = length / static_cast<double>(count), support = std::max(1.0, scale);
  const double centre = begin + (static_cast<double>(i) + 0.5) * scale;
  std::vector<double> weights(static_cast<std::size_t>(size));
  double sum = 0;
  for (std::int64_t k = static_cast<std::int64_t>(begin); k < static_cast<std::int64_t>(std::ceil(begin + length));
       ++k) {
    const double weight = 1 - std::abs((static_cast<double>(k) + 0.5 - centre) / support);
    if (weight > 0) sum += weights[static_cast<std::size_t>(k)] = weight;
  }
  for (double& weight : weights) weight /= sum;
  return weights;
}

// The largest difference from the exact sum.
double resample_error(const Image& src, const Box& box, const Image& dst) {
  double largest = 0;
  for (std::int64_t y = 0; y < dst.height; ++y) {
    const std::vector<double> down = triangle_weights(box.y, box.height, dst.height, y, src.height);
    for (std::int64_t x = 0; x < dst.width; ++x) {
      const std::vector<double> across = triangle_weights(box.x, box.width, dst.width, x, src.width);
      for (std::int64_t c = 0; c < src.channels; ++c) {
        double exact = 0;
        for (std::int64_t v = 0; v < src.height; ++v) {
          if (down[static_cast<std::size_t>(v)] == 0) continue;
          for (std::int64_t u = 0; u < src.width; ++u) {
            exact += down[static_cast<std::size_t>(v)] * across[static_cast<std::size_t>(u)] *
                     src.row(v)[u * src.channels + c];
          }
        }
        largest = std::max(largest, std::abs(exact - dst.row(y)[x * src.channels + c]));
      }
    }
  }
  return largest;
}

Image noise_picture(std::int64_t height, std::int64_t width, std::int64_t channels) {
  Image image;
  image.resize(height, width, channels);
  std::uint32_t state = 12345;
  for (std::uint8_t& value : image.pixels) {
    state = state * 1664525 + 1013904223;
    value = static_cast<std::uint8_t>(state >> 24);
  }
  return image;
}

}  // namespace

TEST_CASE("resampling is that of PIL", "[data]") {
  const auto [name, box] = GENERATE(table<std::string, Box>(
      {{"smaller", {1.5, 2.25, 40.5, 30}}, {"larger", {10, 8, 12, 9}}, {"narrower", {3.75, 20.5, 38, 5.25}}}));
  INFO(name);
  const Image expected = decoded_image(golden_image(name + ".ppm"));
  Image result;
  data::resample(decoded_image(golden_image("colour.ppm")), box, expected.height, expected.width, result);
  CHECK(image_difference(result, expected) <= 1);
}

TEST_CASE("resampling is the mean of a triangle", "[data]") {
  const std::int64_t channels = GENERATE(1, 3);
  struct Case {
    std::int64_t height, width;
    Box box;
    std::int64_t to_height, to_width;
  };
  for (const Case& c : std::vector<Case>{{37, 53, {0, 0, 53, 37}, 16, 20},
                                         {37, 53, {0, 0, 53, 37}, 80, 70},
                                         {37, 53, {11.3, 7.9, 20.2, 28.4}, 33, 9},
                                         {40, 40, {39, 39, 1, 1}, 3, 5},
                                         {40, 40, {0.5, 0.25, 0.25, 0.5}, 3, 5},
                                         {1, 1, {0, 0, 1, 1}, 7, 4},
                                         {1, 90, {0, 0, 90, 1}, 2, 31},
                                         {90, 1, {0, 0, 1, 90}, 31, 2},
                                         {70, 65, {0, 0, 65, 70}, 1, 1},
                                         {300, 200, {0, 0, 200, 300}, 2, 3}}) {
    INFO(c.width << "x" << c.height << " to " << c.to_width << "x" << c.to_height);
    const Image src = noise_picture(c.height, c.width, channels);
    Image dst;
    data::resample(src, c.box, c.to_height, c.to_width, dst);
    CHECK(dst.height == c.to_height);
    CHECK(dst.width == c.to_width);
    CHECK(resample_error(src, c.box, dst) < 1.05);  // half for each axis, and the rounding of weights
  }
}

TEST_CASE("resampling keeps an image at its size, and a colour", "[data]") {
  const Image src = noise_picture(33, 47, 3);
  Image dst;
  data::resample(src, {0, 0, 47, 33}, 33, 47, dst);
  CHECK(dst.pixels == src.pixels);
  data::resample(src, {5, 6, 16, 17}, 17, 16, dst);
  CHECK(dst.pixels == image_part(src, {5, 6, 16, 17}).pixels);
  Image flat = src;
  for (const int value : {0, 1, 127, 254, 255}) {
    std::ranges::fill(flat.pixels, static_cast<std::uint8_t>(value));
    for (const std::int64_t size : {1, 2, 5, 31, 224}) {
      data::resample(flat, {1.7, 0.3, 44.1, 30.9}, size, size + 3, dst);
      CHECK(std::ranges::all_of(dst.pixels, [&](std::uint8_t got) { return got == value; }));
    }
  }
}

TEST_CASE("resampling uses nothing outside of the part", "[data]") {
  Image src = noise_picture(40, 50, 3);
  std::ranges::fill(src.pixels, std::uint8_t{255});
  for (std::int64_t y = 10; y < 20; ++y) std::fill_n(src.row(y) + 3 * 12, 3 * 21, std::uint8_t{0});
  Image dst;
  for (const std::int64_t size : {3, 64}) {
    data::resample(src, {12, 10, 21, 10}, size, size, dst);
    CHECK(std::ranges::all_of(dst.pixels, [](std::uint8_t value) { return value == 0; }));
    data::resample(src, {12.5, 10.25, 20, 9.5}, size, size, dst);
    CHECK(std::ranges::all_of(dst.pixels, [](std::uint8_t value) { return value == 0; }));
    data::resample_nearest(src, {12, 10, 21, 10}, size, size, dst);
    CHECK(std::ranges::all_of(dst.pixels, [](std::uint8_t value) { return value == 0; }));
  }
}

TEST_CASE("parts that are not within the image are not resampled", "[data]") {
  const Image src = noise_picture(10, 20, 3);
  Image dst;
  for (const Box& box : {Box{-0.1, 0, 5, 5},
                         {0, -1, 5, 5},
                         {0, 0, 20.1, 5},
                         {0, 5.5, 5, 5},
                         {0, 0, 0, 5},
                         {0, 0, 5, -1},
                         {0, 0, NAN, 5}}) {
    CHECK_THROWS_AS(data::resample(src, box, 4, 4, dst), ArgumentError);
    CHECK_THROWS_AS(data::resample_nearest(src, box, 4, 4, dst), ArgumentError);
  }
  CHECK_THROWS_AS(data::resample(src, {0, 0, 5, 5}, 0, 4, dst), ArgumentError);
  CHECK_THROWS_AS(data::resample_nearest(src, {0, 0, 5, 5}, 4, 0, dst), ArgumentError);
}

TEST_CASE("nearest neighbours are values of the image", "[data]") {
  Image src;
  src.resize(2, 3, 1);
  src.pixels = {1, 2, 3, 4, 5, 6};
  Image dst;
  data::resample_nearest(src, {0, 0, 3, 2}, 4, 6, dst);
  CHECK(dst.pixels ==
        std::vector<std::uint8_t>{1, 1, 2, 2, 3, 3, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 4, 4, 5, 5, 6, 6});
  data::resample_nearest(src, {0, 0, 3, 2}, 1, 1, dst);
  CHECK(dst.pixels == std::vector<std::uint8_t>{5});
  data::resample_nearest(src, {1, 0, 2, 1}, 1, 2, dst);
  CHECK(dst.pixels == std::vector<std::uint8_t>{2, 3});
  const Image colour = noise_picture(5, 4, 3);
  data::resample_nearest(colour, {0, 0, 4, 5}, 5, 4, dst);
  CHECK(dst.pixels == colour.pixels);
}

TEST_CASE("planes are the channels, mirrored if asked", "[data]") {
  const std::int64_t channels = GENERATE(1, 3);
  for (std::int64_t width = 1; width <= 70; ++width) {
    const Image src = noise_picture(3, width, channels);
    for (const bool mirror : {false, true}) {
      INFO("width " << width << ", mirrored " << mirror);
      std::vector<std::uint8_t> planes(src.pixels.size()), expected;
      data::to_planes(src, mirror, planes);
      for (std::int64_t c = 0; c < channels; ++c) {
        for (std::int64_t y = 0; y < 3; ++y) {
          for (std::int64_t x = 0; x < width; ++x) {
            expected.push_back(src.row(y)[(mirror ? width - 1 - x : x) * channels + c]);
          }
        }
      }
      CHECK(planes == expected);
    }
  }
  std::vector<std::uint8_t> few(5);
  CHECK_THROWS_AS(data::to_planes(noise_picture(2, 2, 3), false, few), ArgumentError);
}

TEST_CASE("weighted sums are the same on every processor", "[data]") {
  const Image rows = noise_picture(24, 64, 3);
  data::FilterTaps taps;
  for (const std::int64_t count : {1, 2, 7, 23, 40}) {
    taps.set(0.5, 22.25, count);
    for (std::size_t i = 0; i < taps.size(); ++i) {
      std::int64_t sum = 0;
      for (std::size_t k = 0; k < taps[i].pairs; ++k) sum += (taps[i].weights[k] & 0xFFFF) + (taps[i].weights[k] >> 16);
      CHECK(sum == 1 << data::FilterTaps::kWeightBits);
      const std::uint8_t* const from = rows.row(static_cast<std::int64_t>(taps[i].first));
      std::vector<std::uint8_t> expected(192);
      for (std::size_t byte = 0; byte < 192; ++byte) {
        std::int32_t exact = 1 << (data::FilterTaps::kWeightBits - 1);
        for (std::size_t k = 0; k < 2 * taps[i].pairs; ++k) {
          exact += (k % 2 == 0 ? taps[i].weights[k / 2] & 0xFFFF : taps[i].weights[k / 2] >> 16) * from[192 * k + byte];
        }
        expected[byte] = static_cast<std::uint8_t>(exact >> data::FilterTaps::kWeightBits);
      }
      for (data::WeightedSum* const weighted_sum : data::weighted_sums()) {
        std::vector<std::uint8_t> got(192);
        weighted_sum(from, 192, taps[i], 192, got.data());
        CHECK(got == expected);
      }
    }
  }
}

TEST_CASE("the channels of pixels are separated to the same bytes on every processor", "[data]") {
  for (const std::size_t pixels : {0, 1, 2, 15, 16, 17, 31, 32, 33, 47, 48, 63, 64, 65, 97, 225}) {
    CAPTURE(pixels);
    std::vector<std::uint8_t> row(3 * pixels);
    for (std::size_t i = 0; i < row.size(); ++i) row[i] = static_cast<std::uint8_t>(i * 37 + i / 256 * 11);
    for (const bool mirror : {false, true}) {
      std::vector<std::vector<std::uint8_t>> expected(3, std::vector<std::uint8_t>(pixels));
      for (std::size_t x = 0; x < pixels; ++x) {
        for (std::size_t c = 0; c < 3; ++c) expected[c][mirror ? pixels - 1 - x : x] = row[3 * x + c];
      }
      for (data::ChannelSeparation* const separate : data::channel_separations()) {
        // A byte behind each row, which nothing may write to.
        std::vector<std::vector<std::uint8_t>> got(3, std::vector<std::uint8_t>(pixels + 1, 0xA5));
        separate(row.data(), pixels, mirror, got[0].data(), got[1].data(), got[2].data());
        for (std::size_t c = 0; c < 3; ++c) {
          CHECK(got[c].back() == 0xA5);
          got[c].pop_back();
          CHECK(got[c] == expected[c]);
        }
      }
    }
  }
}
