// Array files: raw planes in a shard, as numpy's .npy of u8 [channels, rows, columns]. Other programs read them too,
// and the pixels need no other layout in a batch. Internal to the module.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "concord/data/records/records.hpp"

namespace concord::data {

/// Of the files of a sample, what "<key>." stands before.
inline constexpr std::string_view kArrayExtension = "planes.npy";
/// Numpy's head of such an array, in version 1.
inline constexpr std::size_t kArrayHeadBytes = 128;

[[nodiscard]] std::string array_head(const RawImage& image);
/// The sizes that a head has; nothing if the bytes begin with no head of an array. Throws FormatError, which does not
/// know the name, if it is an array of another type, order or rank.
[[nodiscard]] std::optional<RawImage> read_array_head(std::span<const std::byte> bytes);

}  // namespace concord::data
