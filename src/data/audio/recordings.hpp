// Recordings in files without labels, for predictions. Internal to the library; the command uses it.
#pragma once

#include <filesystem>
#include <vector>

#include "concord/data/audio.hpp"

namespace concord::data {

/// Samples of one column of features, in the order of `files`, and without labels. `features` are those of a trained
/// model; its seconds are not 0. A longer recording is cut, or if it `is_whole`, reading it throws FormatError. Throws
/// ArgumentError for no file.
[[nodiscard]] SharedSamples recordings(const std::vector<std::filesystem::path>& files, const AudioFeatures& features,
                                       bool is_whole);

}  // namespace concord::data
