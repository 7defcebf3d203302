// Which samples lie in memory as a Dataset. Internal to the library.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "concord/data/selection.hpp"

namespace concord::data {

/// The data set that `samples` is, or is a selection of; null if they are read one at a time.
[[nodiscard]] const Dataset* dataset_of(const Samples& samples);
/// Turns rows of `samples` into rows of that data set.
void to_dataset_rows(const Samples& samples, std::span<std::int32_t> rows);

}  // namespace concord::data
