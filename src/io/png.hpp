// PNG: writes images, such as inputs and outputs of networks. The samples use it.
#pragma once

#include <filesystem>

#include "concord/core/export.hpp"
#include "concord/core/tensor.hpp"

namespace CONCORD_PUBLIC concord {
namespace io {

/// Writes an image: u8 [1, H, W] (grey) or [3, H, W] (red, green, blue). The file appears completely or not at all.
/// Throws ShapeError for another spec, IoError.
void write_png(const std::filesystem::path& path, const Tensor& picture);

/// Arranges images in a grid with `columns` columns and one grey pixel between images. Input: f32 [N, C, H, W], C = 1
/// or 3, values from 0 (black) to 1 (white); other values are clamped, NaN is black. Output: u8 [C, height, width].
/// Throws ShapeError or ArgumentError.
[[nodiscard]] Tensor picture_grid(const Tensor& pictures, std::int64_t columns);

}  // namespace io
}  // namespace concord
