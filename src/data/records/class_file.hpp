// classes.txt: the names of classes beside shards, in a database's folder or in a folder of images. `concord data pack`
// writes it, and what opens them reads it. Internal to the library.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "concord/data/dataset.hpp"
#include "concord/data/records/labels.hpp"
#include "concord/data/records/records.hpp"

namespace concord::data {

inline constexpr const char* kClassFile = "classes.txt";

/// The content: a name on each line; the first is class 0. Throws ArgumentError for a name with a line end.
[[nodiscard]] std::string class_file_text(const std::vector<std::string>& names);
/// The names in a folder's file; none if there is no such file. Throws FormatError with the line for a name that is
/// empty, no UTF-8 or there twice.
[[nodiscard]] std::vector<std::string> read_class_file(const std::filesystem::path& folder);

/// Names of folders for classes: '/' and control characters become '_', and so does a point in front, which would hide
/// the folder. Equal ones get a number.
[[nodiscard]] std::vector<std::string> class_folders(const std::vector<std::string>& names);

/// Class indices that mean names of `stored` become those of `wanted`, such as the classes of a model. `source` is for
/// messages. Throws ArgumentError for a class that is not wanted.
void to_wanted_classes(Column& labels, const std::vector<std::string>& stored, const std::vector<std::string>& wanted,
                       const std::string& source);

/// The names of a file for class indices that were stored without names. Where the file has too few of them, a warning
/// says so and there are none. With `wanted`, which is not empty, the indices become those of `wanted`, and these are
/// the names.
[[nodiscard]] std::vector<std::string> name_classes(Column& labels, const std::vector<std::string>& stored,
                                                    const std::vector<std::string>& wanted, const std::string& source);

/// For a model whose classes are the numbers below `classes`, without names: makes the first labels such numbers, and
/// the names are gone. A name of `stored`, which read_class_file gave, stands for its line, another one for the number
/// that it is. Does nothing for 0 classes, labels without names and masks. Throws ArgumentError for a class that is
/// none of the numbers.
void to_numbered_classes(Records& records, const std::vector<std::string>& stored, int classes);

}  // namespace concord::data
