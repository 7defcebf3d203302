// libsndfile reads through StoredFile, so that a name may have any bytes and errors of the disk keep their words.
#include "concord/data/audio/recording.hpp"

#include <sndfile.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <string>

#include "concord/core/check.hpp"
#include "concord/core/utf8.hpp"

namespace concord::data {
namespace {

/// Some files of float samples hold whole numbers of 16 or 24 bits; beyond is damage.
constexpr float kLargestSound = 1 << 24;

}  // namespace

struct Recording::Stream {
  explicit Stream(const std::filesystem::path& path) : file(path) {}

  StoredFile file;
  std::int64_t place = 0;
  std::exception_ptr error;  // no exception passes through C
  SNDFILE* sound = nullptr;
  std::vector<float> frames;

  [[nodiscard]] std::int64_t length() const { return static_cast<std::int64_t>(file.stamp().bytes); }

  static Stream& of(void* user) { return *static_cast<Stream*>(user); }
  static sf_count_t get_length(void* user) { return of(user).length(); }
  static sf_count_t tell(void* user) { return of(user).place; }
  static sf_count_t write(const void* /*bytes*/, sf_count_t /*count*/, void* /*user*/) { return 0; }

  static sf_count_t seek(sf_count_t offset, int from, void* user) {
    Stream& stream = of(user);
    const std::int64_t start = from == SF_SEEK_SET ? 0 : from == SF_SEEK_CUR ? stream.place : stream.length();
    std::int64_t place = 0;
    if (__builtin_add_overflow(start, offset, &place) || place < 0) return -1;
    return stream.place = place;
  }

  static sf_count_t read(void* bytes, sf_count_t count, void* user) {
    Stream& stream = of(user);
    if (count <= 0 || stream.place >= stream.length() || stream.error) return 0;
    try {
      const auto got = static_cast<sf_count_t>(stream.file.read_some(
          static_cast<std::uint64_t>(stream.place), {static_cast<std::byte*>(bytes), static_cast<std::size_t>(count)}));
      stream.place += got;
      return got;
    } catch (...) {
      stream.error = std::current_exception();
      return 0;
    }
  }

  void rethrow() const {
    if (error) std::rethrow_exception(error);
  }
};

namespace {

std::string without_end(std::string text) {
  while (!text.empty() && (text.back() == '.' || text.back() == '\n')) text.pop_back();
  return text;
}

}  // namespace

Recording::Recording(const std::filesystem::path& path) : stream_(std::make_unique<Stream>(path)) {
  CONCORD_CHECK(stream_->length() > 0, FormatError, "the file is empty");
  check_sound_chunk(stream_->file);
  SF_VIRTUAL_IO io{Stream::get_length, Stream::seek, Stream::read, Stream::write, Stream::tell};
  SF_INFO info{};
  stream_->sound = sf_open_virtual(&io, SFM_READ, &info, stream_.get());
  stream_->rethrow();
  CONCORD_CHECK(stream_->sound != nullptr, FormatError, "is no recording that {} reads: {}", sf_version_string(),
                printable(without_end(sf_strerror(nullptr))));
  try {
    rate_ = info.samplerate;
    channels_ = info.channels;
    CONCORD_CHECK(rate_ >= kLeastFileRate && rate_ <= kMostFileRate, FormatError,
                  "has {} samples a second; {} to {} are read", rate_, kLeastFileRate, kMostFileRate);
    CONCORD_CHECK(channels_ >= 1 && channels_ <= kMostChannels, FormatError, "has {} channels; up to {} are read",
                  channels_, kMostChannels);
    if (info.frames >= 0 && info.frames < SF_COUNT_MAX) count_ = info.frames;
  } catch (...) {
    sf_close(stream_->sound);
    throw;
  }
}

Recording::~Recording() { sf_close(stream_->sound); }

std::string Recording::reason() const {
  const int code = sf_error(stream_->sound);
  return code == SF_ERR_NO_ERROR ? std::string() : ": " + printable(without_end(sf_strerror(stream_->sound)));
}

void Recording::read(std::int64_t most, std::vector<float>& sound) {
  constexpr std::int64_t kBlock = 4096;
  const auto channels = static_cast<std::size_t>(channels_);
  const float scale = 1.0F / static_cast<float>(channels_);
  std::vector<float>& frames = stream_->frames;
  frames.resize(kBlock * channels);
  sound.clear();
  for (std::int64_t left = most; left > 0;) {
    const std::int64_t got = sf_readf_float(stream_->sound, frames.data(), std::min(left, kBlock));
    stream_->rethrow();
    CONCORD_CHECK(sf_error(stream_->sound) == SF_ERR_NO_ERROR, FormatError, "is damaged after {:.2f} s{}",
                  static_cast<double>(read_) / static_cast<double>(rate_), reason());
    if (got <= 0) break;
    for (std::size_t i = 0; i < static_cast<std::size_t>(got); ++i) {
      float sum = 0;
      for (std::size_t channel = 0; channel < channels; ++channel) sum += frames[i * channels + channel];
      const float mean = channels == 1 ? sum : sum * scale;
      CONCORD_CHECK(std::abs(mean) <= kLargestSound, FormatError, "sample {} is {}, no sound", read_, mean);
      sound.push_back(mean);
      ++read_;
    }
    left -= got;
    if (left > 0 && got < std::min(left + got, kBlock)) break;
  }
  const bool is_short = count_ && read_ < *count_ && static_cast<std::int64_t>(sound.size()) < most;
  CONCORD_CHECK(!is_short, FormatError, "is truncated or damaged: it ends after {} of {} samples{}", read_, *count_,
                reason());
}

void check_sound_chunk(const StoredFile& file) {
  const auto text = [&](std::uint64_t offset, std::size_t count) {
    std::string bytes(count, '\0');
    bytes.resize(file.read_some(offset, std::as_writable_bytes(std::span(bytes.data(), bytes.size()))));
    return bytes;
  };
  const std::string head = text(0, 12);
  const bool is_wav = head.size() == 12 && head.starts_with("RIFF") && head.ends_with("WAVE");
  const bool is_aiff =
      head.size() == 12 && head.starts_with("FORM") && (head.ends_with("AIFF") || head.ends_with("AIFC"));
  if (!is_wav && !is_aiff) return;
  constexpr std::uint32_t kUntilTheEnd = 0x7fff0000;  // and above: 2^31 and 2^32, less a header
  constexpr int kMostChunks = 1000;
  std::uint64_t offset = 12;
  for (int chunk = 0; chunk < kMostChunks; ++chunk) {
    const std::string header = text(offset, 8);
    if (header.size() < 8) return;
    std::uint32_t size = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      const auto byte = static_cast<unsigned char>(header[is_wav ? 7 - i : 4 + i]);
      size = size << 8U | byte;
    }
    offset += 8;
    const std::uint64_t rest = file.stamp().bytes - std::min(file.stamp().bytes, offset);
    if (header.starts_with(is_wav ? "data" : "SSND")) {
      CONCORD_CHECK(size <= rest || size >= kUntilTheEnd, FormatError,
                    "is truncated: its header announces {} bytes of sound, and {} follow", size, rest);
      return;
    }
    offset += std::uint64_t{size} + (size & 1U);
  }
}

}  // namespace concord::data
