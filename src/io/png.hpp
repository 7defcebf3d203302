// PNG: pictures that networks are shown and make, written for people. Used by the samples.
#pragma once

#include <filesystem>

#include "concord/core/export.hpp"
#include "concord/core/tensor.hpp"

namespace CONCORD_PUBLIC concord {
namespace io {

/// Writes a picture: u8 [1, H, W] in grey or [3, H, W] in red, green, blue. The file appears whole or not at all.
/// Throws ShapeError for another spec, IoError.
void write_png(const std::filesystem::path& path, const Tensor& picture);

/// Pictures f32 [N, C, H, W], C 1 or 3, values from 0 (black) to 1 (white; what lies outside is clamped, NaN is black),
/// side by side in rows of `columns` with a pixel of grey between: u8 [C, …, …]. Throws ShapeError or ArgumentError.
[[nodiscard]] Tensor picture_grid(const Tensor& pictures, std::int64_t columns);

}  // namespace io
}  // namespace concord
