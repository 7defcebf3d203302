// A table to predict from: every row of its file, also those that cannot be read. `concord predict` uses it. Internal
// to the library.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "concord/data/table/csv.hpp"

namespace concord::data {

struct CsvInputs {
  struct Row {
    std::int64_t line = 0;    // in which it begins, from 1
    std::string problem;      // why it cannot be read; empty: `dataset` has it
    std::int32_t label = -1;  // what the file says of the first label with classes; -1: nothing, or another class
  };
  Dataset dataset;        // the rows that can be read, without labels; unset if there are none
  std::vector<Row> rows;  // all rows of the file
};

/// Reads the inputs of `fitted`. Labels need not be there, and what they say makes no row bad. Of `options` only
/// separator, decimal and header count. Throws as read_csv and encode_csv, but not for bad rows.
[[nodiscard]] CsvInputs csv_inputs(const std::filesystem::path& path, const CsvOptions& options,
                                   const CsvEncoding& fitted);

}  // namespace concord::data
