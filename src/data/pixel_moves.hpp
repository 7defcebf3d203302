// Pixel moves: random_horizontal_flip and random_crop as what a device can do. The host draws the numbers with which
// image_changes.hpp describes where a pixel comes from. Internal to the library.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "concord/data/loader_options.hpp"

namespace concord::data {

/// The functions behind random_horizontal_flip, random_crop and in_order.
struct RandomFlip {
  std::uint64_t seed = 0;
  double p = 0.5;
  void operator()(std::span<std::byte> features, const SampleInfo& sample) const;
  [[nodiscard]] bool is_flipped(std::int32_t row, std::uint32_t epoch) const;
};
struct RandomMove {
  struct Place {
    std::int64_t down = 0, right = 0;
  };
  std::uint64_t seed = 0;
  std::int64_t padding = 0;
  void operator()(std::span<std::byte> features, const SampleInfo& sample) const;
  [[nodiscard]] Place place(std::int32_t row, std::uint32_t epoch) const;
};
struct InOrder {
  std::vector<Augmentation> all;
  void operator()(std::span<std::byte> features, const SampleInfo& sample) const;
};

/// Flips and at most one move, in the order in which they apply.
class PixelMoves {
 public:
  using Step = std::variant<RandomFlip, RandomMove>;
  /// Nothing if `augmentation` does anything else, or moves twice: what left the image does not come back.
  [[nodiscard]] static std::optional<PixelMoves> of(const Augmentation& augmentation);
  /// Writes the first kPlaceNumbers numbers of a sample that is `width` pixels wide.
  void draw(std::int64_t width, std::int32_t row, std::uint32_t epoch, std::span<float> numbers) const;

 private:
  std::vector<Step> steps_;
};

}  // namespace concord::data
