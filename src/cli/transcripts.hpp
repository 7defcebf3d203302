// Transcripts: the text that a network for recordings recognises, and that of the labels. Used by evaluate and predict.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "concord/concord.hpp"

namespace concord::cli {

/// Of outputs (N, steps, classes): the text of the best class of each step (data::transcript_of).
[[nodiscard]] std::vector<std::string> recognised_texts(const Tensor& outputs, const std::string& alphabet);
/// Of labels i32 (N, length), which end where their zeros begin.
[[nodiscard]] std::vector<std::string> transcripts_of(const Tensor& labels, const std::string& alphabet);
/// Of all samples, in parts that fit into memory.
[[nodiscard]] data::TranscriptErrors transcript_errors(Trainer& trainer, const Samples& samples,
                                                       const std::string& alphabet, std::int64_t batch);

}  // namespace concord::cli
