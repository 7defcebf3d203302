// Fingerprint: 128 bits of a sample by which equal ones are found. Not for secrets: whoever wants two different samples
// of one fingerprint can make them.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>

namespace concord::cli {

struct Fingerprint {
  std::uint64_t first = 0, second = 0;  // two hashes that are independent of each other
  friend auto operator<=>(const Fingerprint&, const Fingerprint&) = default;
};

/// Of the bytes and a number beside them, such as the width of an image.
[[nodiscard]] Fingerprint fingerprint_of(std::span<const std::byte> bytes, std::uint64_t beside = 0);

}  // namespace concord::cli
