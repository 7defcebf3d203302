// Samples that are read by all threads, where one that cannot be read does not stop the others.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "concord/concord.hpp"

namespace concord::cli {

struct RowsRead {
  Dataset dataset;                  // of the rows without an error, in their order; unset if there are none
  std::vector<std::string> errors;  // for each row; empty: it was read
};

/// Reads samples that have one column of features and no labels.
[[nodiscard]] RowsRead read_in_parallel(const Samples& samples, std::span<const std::int32_t> rows);

}  // namespace concord::cli
