// Lists of samples: a text with a line "path label [label …]" for each. Internal to the module; used by folder.cpp.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "concord/data/records/name_table.hpp"
#include "concord/data/records/open.hpp"

namespace concord::data {

struct SampleList {
  NameTable paths;                       // as they are written
  std::vector<Column> labels;            // the second is named "label2", and so on; none if there are only paths
  std::vector<std::string> class_names;  // of the first column of classes, if they are known
};

/// Blanks separate the fields of a line; or tabs, if it has one, and then fields may hold blanks. A field may stand in
/// quotes, where "" is a quote. Empty lines do not count. Throws FormatError with `file` and the line. Names of classes
/// that are not among those of `options` are an ArgumentError.
[[nodiscard]] SampleList parse_sample_list(std::string_view text, const std::filesystem::path& file,
                                           const RecordOptions& options);

}  // namespace concord::data
