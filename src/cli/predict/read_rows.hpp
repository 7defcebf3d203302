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

/// Reads all columns of these samples. Throws what Samples::read throws, but for FormatError and IoError.
[[nodiscard]] RowsRead read_in_parallel(const Samples& samples, std::span<const std::int32_t> rows);

/// What the network sees of each row; an unset tensor for one that could not be read. Throws ArgumentError, with the
/// name of the data, for samples that are no pictures.
void add_pictures(const RowsRead& read, const std::string& data, std::vector<Tensor>& pictures);

}  // namespace concord::cli
