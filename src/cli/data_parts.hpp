// What a DataSpec says of the parts of a data set, whatever network they are for.
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

#include "concord/cli/data_spec.hpp"
#include "concord/concord.hpp"

namespace concord::cli {

/// A part of a named collection, such as mnist: "train" or "test".
[[nodiscard]] Dataset read_collection(const DataSpec& spec, std::string_view split);
/// The path of a part of stored images; empty if there is none.
[[nodiscard]] std::filesystem::path path_of_part(const DataSpec& spec, std::string_view part);
/// Throws ArgumentError if the options name other labels than the encoding of weights has, or drop one of its inputs.
void check_encoding_fits(const data::CsvOptions& given, const data::CsvEncoding& fitted);
/// Throws ArgumentError, with the columns that the file lacks, for a table that was read without labels.
void check_labels(const Dataset& table, std::string_view file, const data::CsvEncoding& fitted);
/// The folder of the masks of a part, which is named like the part's folder where the images come in such; empty if
/// there are none.
[[nodiscard]] std::filesystem::path masks_of_part(const DataSpec& spec, std::string_view part);
/// The number of classes in masks; nothing where the spec does not say. Throws ArgumentError for one that is none.
[[nodiscard]] std::optional<int> classes_of_masks(const DataSpec& spec);
/// Throws ArgumentError if the spec gives the number of classes in masks and there are no masks.
void require_masks(const DataSpec& spec, bool has_masks);
/// How a table is read. Throws ArgumentError for a value of an option that is none.
[[nodiscard]] data::CsvOptions csv_options_of(const DataSpec& spec);

}  // namespace concord::cli
