// Units from Philox.
#include "concord/search/draw.hpp"

#include <fmt/format.h>

namespace concord::search {

Philox stream_of(std::string_view purpose, std::uint64_t seed, std::int64_t trial, std::string_view name) {
  return {seed, philox_purpose(fmt::format("search.{}.{}", purpose, name)), static_cast<std::uint32_t>(trial)};
}

double unit_of(const Philox& stream, std::uint64_t index) {
  const auto words = stream.block(index);
  return (static_cast<double>(words[0] >> 5U) * 0x1p26 + static_cast<double>(words[1] >> 6U)) * 0x1p-53;
}

}  // namespace concord::search
