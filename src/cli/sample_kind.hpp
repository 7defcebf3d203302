// What kind of samples weights are for and what kind files have. `evaluate` and `predict` refuse those that do not fit.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "concord/cli/saved_network.hpp"

namespace concord::cli {

enum class SampleKind { unknown, images, recordings, table, text };

/// By the metadata of the weights; where they say nothing, language models are for text, all else is unknown.
[[nodiscard]] SampleKind kind_of(const Trained& trained, const models::Model& model);
/// By the ending of its name; of a folder, by that of the first file below it that has such an ending.
[[nodiscard]] SampleKind kind_of_file(const std::filesystem::path& file);
/// By the KIND of --data.
[[nodiscard]] SampleKind kind_of_data(std::string_view kind);

/// Throws ArgumentError with what the weights were trained on, and what to give, if this is of another kind.
void check_files_fit(const SavedNetwork& saved, const std::vector<std::string>& files);
/// The same for --data of a `command`.
void check_data_fits(const SavedNetwork& saved, const std::string& data, std::string_view command);

/// The files, and the recordings below folders among them, by their names.
[[nodiscard]] std::vector<std::string> recordings_in(const std::vector<std::string>& files);

}  // namespace concord::cli
