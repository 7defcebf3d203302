// Columns of a sample in memory. Internal to the module.
#pragma once

#include <cstddef>
#include <vector>

#include "concord/data/dataset.hpp"

namespace concord::data {

/// The bytes of one sample in all columns.
[[nodiscard]] inline std::size_t bytes_of(const std::vector<ColumnSpec>& columns) {
  std::size_t sum = 0;
  for (const ColumnSpec& column : columns) sum += column.spec.bytes();
  return sum;
}

/// A data set of these columns, unchecked. There may be no labels.
[[nodiscard]] Dataset joined(std::vector<Column> features, std::vector<Column> labels);

}  // namespace concord::data
