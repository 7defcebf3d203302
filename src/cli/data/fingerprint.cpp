// Two hashes, each a chain of products of 64 by 64 bits whose halves are folded (as in wyhash, Wang Yi, 2019), with
// other constants. 16 bytes a step.
#include "concord/cli/data/fingerprint.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace concord::cli {
namespace {

// Odd, with half of their bits set; digits of √2 … √11 and π.
constexpr std::array<std::uint64_t, 6> kFactors = {0xB504F333F9DE6485U, 0xBB67AE8584CAA73BU, 0x9B05688C2B3E6C1FU,
                                                   0xA54FF53A5F1D36F1U, 0x5FB5C67D3C2C9C4FU, 0x243F6A8885A308D3U};

std::uint64_t low_product(std::uint64_t a, std::uint64_t b, std::uint64_t& high) {
  const std::uint64_t a0 = a & 0xFFFFFFFFU, a1 = a >> 32, b0 = b & 0xFFFFFFFFU, b1 = b >> 32;
  const std::uint64_t p00 = a0 * b0, p01 = a0 * b1, p10 = a1 * b0, p11 = a1 * b1;
  const std::uint64_t middle = (p00 >> 32) + (p01 & 0xFFFFFFFFU) + (p10 & 0xFFFFFFFFU);
  high = p11 + (p01 >> 32) + (p10 >> 32) + (middle >> 32);
  return (middle << 32) | (p00 & 0xFFFFFFFFU);
}

std::uint64_t folded(std::uint64_t a, std::uint64_t b) {
  std::uint64_t high = 0;
  const std::uint64_t low = low_product(a, b, high);
  return low ^ high;
}

}  // namespace

Fingerprint fingerprint_of(std::span<const std::byte> bytes, std::uint64_t beside) {
  Fingerprint hash{kFactors[4] ^ beside, kFactors[5] + beside};
  for (std::size_t at = 0; at < bytes.size(); at += 16) {
    std::array<std::uint64_t, 2> words{};
    std::memcpy(words.data(), bytes.data() + at, std::min<std::size_t>(bytes.size() - at, 16));
    // A product with 0 would forget the rest: each word meets the state before the product, which is added again.
    hash.first = folded(words[0] ^ kFactors[0], words[1] ^ hash.first) + words[0] * kFactors[1];
    hash.second = folded(words[1] ^ kFactors[2], words[0] ^ hash.second) + words[1] * kFactors[3];
  }
  const auto size = static_cast<std::uint64_t>(bytes.size());
  return {folded(hash.first ^ kFactors[0], size ^ kFactors[1]), folded(hash.second ^ kFactors[2], size ^ kFactors[3])};
}

}  // namespace concord::cli
