// Recordings as a data set: WAV, FLAC and what else libsndfile reads, with classes or with transcripts. A sample is a
// spectrogram that is made when it is read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "concord/core/export.hpp"
#include "concord/data/samples.hpp"

namespace CONCORD_PUBLIC concord {
namespace data {

/// What the logarithms of a spectrogram are normalised by: they become (x − mean)/deviation. Only frames with sound
/// count; those after the end of a recording become 0.
enum class AudioNormalisation : std::uint8_t {
  none,       // they stay as they are, also after the end
  recording,  // the mean and deviation of the whole recording
  features    // those of each frequency in the recording; a steady tone vanishes
};

/// How recordings become features: ln(power + 2^-24) of a short-time Fourier transform with a periodic Hann window.
/// Frame t is centred on sample t·hop, outside the recording there are zeros: what librosa.stft(center=True,
/// pad_mode="constant") gives, without its last frame. This belongs to a trained model and is saved with its weights.
struct AudioFeatures {
  std::int64_t rate = 16000;  // samples a second, 1,000 … 192,000; others are resampled
  double seconds = 0;         // of a sample, at most 600: shorter ones end in zeros. 0: the longest of the list
  double window = 0.02;       // seconds; rounded to samples
  double hop = 0.01;          // seconds between two frames; rounded to samples
  /// 0: a linear spectrogram of window·rate/2 + 1 frequencies, from 0 to rate/2. Else the number of mel filters: as
  /// librosa's, with Slaney's scale and norm, from 0 to rate/2, of a transform of the next power of two.
  std::int64_t mels = 0;
  AudioNormalisation normalisation = AudioNormalisation::recording;
  std::vector<std::string> class_names = {};  // if they are known

  /// Frequencies or mel filters.
  [[nodiscard]] std::int64_t features() const;
  /// Frames in a sample. `seconds` must not be 0.
  [[nodiscard]] std::int64_t frames() const;
  /// Throws ArgumentError if a field is out of range.
  void check() const;

  /// One line of JSON. from_json() of it is equal to the last bit.
  [[nodiscard]] std::string to_json() const;
  /// Throws FormatError, which begins with `subject`, if the text is not what to_json() writes or is out of range.
  [[nodiscard]] static AudioFeatures from_json(std::string_view text, std::string_view subject);
  friend bool operator==(const AudioFeatures&, const AudioFeatures&) = default;
};

/// Parts of a spectrogram that are set to 0 while training (Park et al., "SpecAugment", 2019), the mean of normalised
/// features. Each mask is as wide as a random number from 0 to its width says, at a random place.
struct AudioMasks {
  int time = 0, time_width = 40;            // their number, and frames
  int frequency = 0, frequency_width = 27;  // their number, and features
  friend bool operator==(const AudioMasks&, const AudioMasks&) = default;
};

struct AudioOptions {
  AudioFeatures features = {};
  /// Whether what follows a path is a transcript: the rest of the line. Else it has labels, as a list of images.
  bool transcripts = false;
  /// Of transcripts: the characters in UTF-8; character k is class k + 1, and class 0 the blank of CTC. Empty: those of
  /// the list, sorted.
  std::string alphabet = {};
  std::int64_t label_length = 0;  // of transcripts with the zeros behind them; 0: that of the longest
  /// Of transcripts: a network that has a step for as many frames. A transcript that CTC cannot fit into the steps of a
  /// sample is an error.
  std::int64_t frames_per_step = 1;
  /// The name of a second input i32: how many frames have sound. Empty: there is none.
  std::string lengths_name = {};
  AudioMasks masks = {};  // for training
  /// Without `seconds`: a recording that cannot be opened ends the opening of the set; or a warning counts such
  /// recordings and names the first one, and the longest of the others counts. Reading such a sample is an error.
  BadSamples bad_samples = BadSamples::fail;
};

struct AudioSet {
  SharedSamples samples;
  AudioFeatures features;  // those of the options, with the seconds and the class names of the list
  std::string alphabet;    // of transcripts
  int classes = 0;         // of transcripts: the characters and the blank
};

/// Reads a list: a text in UTF-8 with a line "path<tab or blank>label or transcript" for each recording; paths are
/// relative to the list, and one with blanks stands in quotes or is followed by a tab. Recordings are read when a
/// sample is, mixed to one channel and resampled. A longer recording is cut after `seconds` if it has a class.
///
/// The samples: features f32 [1, features, frames], perhaps lengths i32; labels i32, the class or the characters
/// [label_length] padded with zeros, whose ColumnSpec::classes is 0 since no step has a class of its own; or f32
/// targets.
///
/// Throws IoError if the list, or without `seconds` a recording, cannot be read; FormatError with file and line for a
/// damaged list, for transcripts that are not UTF-8, and for one too long; ArgumentError if an option is out of range,
/// a class is not among `features.class_names`, a character not in the alphabet, or the longest recording lasts over
/// 600 seconds. With `seconds` 0 each recording is opened. Reading a sample throws FormatError for a recording that is
/// damaged, truncated, empty, or has a transcript and is longer than `seconds`. A silent one is read as zeros.
[[nodiscard]] AudioSet audio(const std::filesystem::path& list, const AudioOptions& options = {});

/// The characters of texts in UTF-8, sorted, each once. Throws ArgumentError for a text that is not UTF-8.
[[nodiscard]] std::string characters_of(std::span<const std::string> texts);
/// The most probable transcript without a language model: `classes` has the best class of each step. Repeated classes
/// count once, and blanks not at all (Graves et al., 2006). Throws ArgumentError for a class that the alphabet lacks.
[[nodiscard]] std::string transcript_of(std::string_view alphabet, std::span<const std::int32_t> classes);

/// Sums of edits between transcripts and what was recognised: substituted, missing and additional characters of UTF-8,
/// and likewise words (Levenshtein distance).
struct TranscriptErrors {
  std::int64_t characters = 0, character_edits = 0;
  std::int64_t words = 0, word_edits = 0;
  void add(std::string_view transcript, std::string_view recognised);
  /// Edits per character or word of the transcripts; above 1 if there are more edits. 0 without any.
  [[nodiscard]] double character_error_rate() const;
  [[nodiscard]] double word_error_rate() const;
};

}  // namespace data
}  // namespace concord
