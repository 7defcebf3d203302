// Philox: the host's view of the generator that is shared with the kernels.
#include "concord/core/philox.hpp"

#include "../../cl_kernels/shared/philox.h"

namespace concord {

std::array<std::uint32_t, 4> Philox::block(std::uint64_t index) const {
  const philox_block block = philox4x32(index, purpose_, step_, seed_);
  return {block.word[0], block.word[1], block.word[2], block.word[3]};
}

std::uint32_t Philox::word(std::uint64_t index) const { return philox_word(index, purpose_, step_, seed_); }

float Philox::uniform(std::uint64_t index) const { return philox_uniform(index, purpose_, step_, seed_); }

std::uint32_t PhiloxSequence::next() {
  const std::size_t lane = position_ % 4;
  if (lane == 0) block_ = stream_.block(position_ / 4);
  ++position_;
  return block_[lane];
}

std::uint32_t PhiloxSequence::below(std::uint32_t bound) {
  std::uint64_t product = std::uint64_t{next()} * bound;
  if (static_cast<std::uint32_t>(product) < bound) {
    const std::uint32_t threshold = (0u - bound) % bound;
    while (static_cast<std::uint32_t>(product) < threshold) product = std::uint64_t{next()} * bound;
  }
  return static_cast<std::uint32_t>(product >> 32);
}

}  // namespace concord
