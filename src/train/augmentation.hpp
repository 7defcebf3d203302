// Augmentation on the device: the images of a batch of a resident set are cropped, mirrored and changed in colour by
// numbers that the host draws for an epoch (data/image/image_changes.hpp). The pixels are those that the host would
// make, to the bit. Internal to the module.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "concord/data/image/image_changes.hpp"
#include "concord/graph/graph.hpp"

namespace concord::train {

/// Changes images u8 [n, C, H, W] by the numbers of each.
[[nodiscard]] Value changed(Value images, Value numbers, const data::ImageTransform& transform);

/// Draws the numbers of a sample. Several threads call it at the same time.
using DrawChanges = std::function<void(std::int32_t row, std::uint32_t epoch, std::span<float> numbers)>;

}  // namespace concord::train
