// Which augmentations are moves, and the place that several of them give.
#include "concord/data/pixel_moves.hpp"

#include "concord/data/image/image_changes.hpp"

namespace concord::data {
namespace {

/// Returns false for what is no move.
bool add_steps(const Augmentation& augmentation, std::vector<PixelMoves::Step>& steps) {
  if (const auto* flip = augmentation.target<RandomFlip>()) {
    steps.emplace_back(*flip);
    return true;
  }
  if (const auto* move = augmentation.target<RandomMove>()) {
    for (const PixelMoves::Step& step : steps) {
      if (std::holds_alternative<RandomMove>(step)) return false;
    }
    steps.emplace_back(*move);
    return true;
  }
  const auto* order = augmentation.target<InOrder>();
  if (order == nullptr) return false;
  for (const Augmentation& one : order->all) {
    if (!add_steps(one, steps)) return false;
  }
  return true;
}

}  // namespace

std::optional<PixelMoves> PixelMoves::of(const Augmentation& augmentation) {
  PixelMoves moves;
  if (!add_steps(augmentation, moves.steps_)) return std::nullopt;
  return moves;
}

void PixelMoves::draw(std::int64_t width, std::int32_t row, std::uint32_t epoch, std::span<float> numbers) const {
  std::int64_t top = 0, left = 0, right = 1;
  for (const Step& step : steps_) {
    if (const auto* flip = std::get_if<RandomFlip>(&step)) {
      if (!flip->is_flipped(row, epoch)) continue;
      left += right * (width - 1);
      right = -right;
    } else {
      const RandomMove::Place place = std::get<RandomMove>(step).place(row, epoch);
      top += place.down;
      left += right * place.right;
    }
  }
  numbers[kTop] = static_cast<float>(top);
  numbers[kDown] = 1;
  numbers[kLeft] = static_cast<float>(left);
  numbers[kRight] = static_cast<float>(right);
}

}  // namespace concord::data
