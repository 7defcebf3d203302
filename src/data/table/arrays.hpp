// Data sets in numpy's arrays: two .npy files, or one .npz file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

#include "concord/core/export.hpp"
#include "concord/data/dataset.hpp"

namespace CONCORD_PUBLIC concord {
namespace data {

/// Reads features [N, …] and labels from .npy files, with the element types of io::read_npy.
///
/// Images in bytes become [N, C, H, W]: u8 [N, H, W] is grey, and u8 [N, H, W, C] with C 1 or 3 is transposed, as Keras
/// stores it, unless the second dimension is 1 or 3 too. A byte b of an image counts as b/255. Other features stay as
/// they are, also bytes [N, F]. bool counts as 0 and 1; in images its bytes are 0 and 255.
///
/// Whole numbers are class indices, one more than the largest is the number of classes: [N], [N, 1], which becomes [N],
/// or one for each position or pixel [N, …]; labels equal to `ignored` do not count. Floating point numbers are
/// targets: [N] becomes [N, 1].
///
/// Throws IoError; FormatError for a damaged file, arrays of different lengths or without samples, and the first label
/// that is no class index.
[[nodiscard]] Dataset npy(const std::filesystem::path& features, const std::filesystem::path& labels,
                          std::optional<std::int32_t> ignored = {});

/// Features alone, to predict.
[[nodiscard]] Dataset npy(const std::filesystem::path& features);

/// The same from the arrays `x` and `y` of an .npz file. An empty name means the array of the split "train" or "test":
/// x_train, train_images, x, X, features, data or arr_0, and y_train, train_labels, y, Y, labels, target or arr_1, the
/// first of them that the file has; or x_test or test_images, and y_test or test_labels. Keras' mnist.npz is such a
/// file. Throws ArgumentError with the names that there are if the file has none of them.
[[nodiscard]] Dataset npz(const std::filesystem::path& path, std::string_view x = {}, std::string_view y = {},
                          std::string_view split = "train", std::optional<std::int32_t> ignored = {});

/// Whether an .npz file has arrays of the split "test".
[[nodiscard]] bool npz_has_test(const std::filesystem::path& path);

}  // namespace data
}  // namespace concord
