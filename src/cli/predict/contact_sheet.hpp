// A contact sheet: small pictures in a grid, each with lines of text below it. Used by `concord predict --sheet`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "concord/core/tensor.hpp"

namespace concord::cli {

struct SheetCell {
  Tensor picture;  // u8 [C, H, W] with 1 or 3 channels; unset: a grey square
  std::vector<std::string> lines;
};

inline constexpr std::int64_t kMostSheetCells = 1000;

/// A picture u8 [3, H, W] on white. A small picture is enlarged by a whole factor, a large one is made smaller. A line
/// that is too long has smaller letters, and then ends in dots. Throws ArgumentError for no cell or more than
/// kMostSheetCells.
[[nodiscard]] Tensor contact_sheet(const std::vector<SheetCell>& cells);

}  // namespace concord::cli
