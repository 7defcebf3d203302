// The classes of pixels, which a network for segmentation predicts: how much of a picture each class has, and the
// picture in their colours. Used by `concord predict`.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "concord/cli/predict/prediction.hpp"
#include "concord/core/tensor.hpp"

namespace concord::cli {

/// The likeliest class of each pixel of sample `row`, of equal ones the lower; row-major. `logits` f32 [N, classes, H,
/// W].
[[nodiscard]] std::vector<std::int32_t> pixel_classes(const Tensor& logits, std::int64_t row);

/// Sets the numbers of the predictions, which are the rows of `logits`: the share of the pixels of each class, 0 to 1.
void add_pixel_shares(const Tensor& logits, const std::vector<Prediction*>& to);
/// The names of these numbers: "class 0", "class 1", …
[[nodiscard]] std::vector<std::string> names_of_shares(const Tensor& logits);
/// "class 2: 60.0 %" of the classes with the largest shares, at most `most`.
[[nodiscard]] std::vector<std::string> largest_shares(std::span<const float> shares, std::size_t most);

/// A picture u8 [1 or 3, H, W] whose pixels are half their own and half the colour of their class. Class 0, which is
/// most often the background, keeps its pixels. Returns u8 [3, H, W]; throws ShapeError for other numbers of pixels.
[[nodiscard]] Tensor painted(const Tensor& picture, std::span<const std::int32_t> classes);

}  // namespace concord::cli
