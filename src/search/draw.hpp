// Random numbers of a search: each depends only on the seed, the trial and the name of the parameter. Internal to the
// library.
#pragma once

#include <cstdint>
#include <string_view>

#include "concord/core/philox.hpp"

namespace concord::search {

/// The stream of random numbers of a parameter in a trial. Use `purpose` to keep streams apart.
[[nodiscard]] Philox stream_of(std::string_view purpose, std::uint64_t seed, std::int64_t trial, std::string_view name);
/// Number `index` of the stream in [0, 1), with 53 bits.
[[nodiscard]] double unit_of(const Philox& stream, std::uint64_t index);

}  // namespace concord::search
