// Columns from labels that are texts. Internal to the module; used by lists and tar files.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "concord/data/dataset.hpp"

namespace concord::data {

struct LabelTexts {
  std::size_t count = 0;
  std::function<std::string_view(std::size_t row)> text;  // not empty
  std::function<std::string(std::size_t row)> place;      // for messages: "list.txt, line 3"
};

/// All whole numbers: classes; numbers of which one has a decimal point: targets; words: names of classes, whose order
/// is that of their bytes. With `class_names` names are looked up there; else it becomes the names. Numbers and words
/// in one column, negative classes and targets that are not finite are a FormatError with the place; what is not among
/// the classes, an ArgumentError.
[[nodiscard]] Column label_column(const LabelTexts& labels, std::vector<std::string>& class_names);

}  // namespace concord::data
