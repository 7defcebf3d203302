// Recordings as files have them, through libsndfile. Internal to the module; audio_samples.cpp uses it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "concord/data/records/stored_file.hpp"

namespace concord::data {

inline constexpr std::int64_t kLeastFileRate = 1000, kMostFileRate = 768000, kMostChannels = 64;

/// An open file. One thread uses it.
class Recording {
 public:
  /// Throws IoError; FormatError if it is no recording, has 0 or over 64 channels or samples a second outside
  /// kLeastFileRate … kMostFileRate, or ends before the sound that its header announces.
  explicit Recording(const std::filesystem::path& path);
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  [[nodiscard]] std::int64_t rate() const { return rate_; }
  /// Samples of one channel, as the header says; nothing if it does not.
  [[nodiscard]] std::optional<std::int64_t> count() const { return count_; }
  /// Reads the next samples into `sound`, the mean of the channels, full scale as ±1: at most `most`, all there are if
  /// there are fewer. Throws FormatError if they are damaged, not finite or beyond ±kLargestSound, or fewer than
  /// announced.
  void read(std::int64_t most, std::vector<float>& sound);

 private:
  struct Stream;
  [[nodiscard]] std::string reason() const;

  std::unique_ptr<Stream> stream_;
  std::int64_t rate_ = 0, channels_ = 0, read_ = 0;
  std::optional<std::int64_t> count_;
};

/// Throws FormatError if a chunk of a WAV or AIFF file that holds sound is longer than the rest of the file: libsndfile
/// reads what there is. Lengths that mean "until the end" pass, as those of programs that write into a pipe.
void check_sound_chunk(const StoredFile& file);

}  // namespace concord::data
