// Samples: what does not depend on where they come from.
#include "concord/data/samples.hpp"

#include <fmt/format.h>

#include "concord/core/philox.hpp"

namespace concord {
namespace {

Philox stream_of(const SampleRandom& random, std::string_view purpose) {
  const std::uint64_t own = random.seed + (static_cast<std::uint64_t>(static_cast<std::uint32_t>(random.row)) << 32);
  return Philox(own, philox_purpose(purpose), random.epoch);
}

}  // namespace

std::uint32_t SampleRandom::word(std::string_view purpose, std::uint64_t index) const {
  return stream_of(*this, purpose).word(index);
}

float SampleRandom::uniform(std::string_view purpose, std::uint64_t index) const {
  return stream_of(*this, purpose).uniform(index);
}

std::optional<std::int32_t> Samples::class_of(std::int64_t /*row*/) const { return std::nullopt; }

void Samples::start(const SampleRandom& /*first*/, std::span<const std::int32_t> /*rows*/) const {}

std::string Samples::name_of(std::int64_t row) const { return fmt::format("sample {}", row); }

}  // namespace concord
