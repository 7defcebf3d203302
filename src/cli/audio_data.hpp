// audio: of --data, recordings for a network. Used by dataset.cpp.
#pragma once

#include <string>

#include "concord/cli/data_spec.hpp"
#include "concord/cli/trained.hpp"
#include "concord/concord.hpp"

namespace concord::cli {

/// What the options of a spec say, on top of what the weights say that training starts with. A network for
/// transcription takes lists with transcripts. Throws ArgumentError for a value that is none.
[[nodiscard]] data::AudioOptions audio_options(const DataSpec& spec, const models::Model& model,
                                               const Trained& trained);
/// Throws ArgumentError for an option that says otherwise than the weights: the network knows no other features.
void check_audio_fits(const DataSpec& spec, const Trained& trained);
/// Throws ArgumentError if spectrograms have other frequencies than the network takes.
void check_fits_audio(const Shape& sample, const models::Model& model);
/// The characters in UTF-8 and the blank.
[[nodiscard]] int classes_of_alphabet(const std::string& alphabet);

}  // namespace concord::cli
