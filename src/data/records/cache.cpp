// Decoded images in memory, or in a file without a name.
#include "concord/data/records/cache.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <utility>

#include "concord/core/check.hpp"
#include "concord/core/log.hpp"
#include "concord/data/image/codec.hpp"
#include "concord/data/image/resample.hpp"
#include "concord/data/records/stored_file.hpp"

namespace concord::data {
namespace {

/// Where the pixels of an image lie.
struct CachedImage {
  RawImage raw;
  std::vector<std::byte> pixels;  // in memory
  std::uint64_t offset = 0;       // in the file
  std::uint64_t bytes = 0;
};

/// A file that no folder lists, so that it goes with the process.
class CacheFile {
 public:
  explicit CacheFile(const std::filesystem::path& directory) {
    std::string name = (directory / "concord-cache-XXXXXX").string();
    descriptor_ = mkostemp(name.data(), O_CLOEXEC);
    CONCORD_CHECK(descriptor_ >= 0, IoError, "{}: a cache cannot be made there: {}", directory.string(),
                  std::strerror(errno));
    unlink(name.c_str());
  }
  CacheFile(const CacheFile&) = delete;
  CacheFile& operator=(const CacheFile&) = delete;
  ~CacheFile() { close(descriptor_); }

  /// Returns whether there was room.
  [[nodiscard]] bool write(std::uint64_t offset, std::span<const std::byte> bytes) const {
    while (!bytes.empty()) {
      const ssize_t written = pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return false;
      bytes = bytes.subspan(static_cast<std::size_t>(written));
      offset += static_cast<std::uint64_t>(written);
    }
    return true;
  }
  [[nodiscard]] bool read(std::uint64_t offset, std::span<std::byte> bytes) const {
    while (!bytes.empty()) {
      const ssize_t read = pread(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
      if (read < 0 && errno == EINTR) continue;
      if (read <= 0) return false;
      bytes = bytes.subspan(static_cast<std::size_t>(read));
      offset += static_cast<std::uint64_t>(read);
    }
    return true;
  }

 private:
  int descriptor_;
};

class CachedRecords final : public Records {
 public:
  CachedRecords(RecordsPtr records, const CacheOptions& options) : records_(std::move(records)), options_(options) {
    name = records_->name;
    labels = records_->labels;
    class_names = records_->class_names;
    mask_classes = records_->mask_classes;
    if (!options_.used) options_.used = std::make_shared<std::atomic<std::uint64_t>>(0);
    if (!options.directory.empty()) file_.emplace(options.directory);
  }
  [[nodiscard]] std::int64_t size() const override { return records_->size(); }
  [[nodiscard]] std::string name_of(std::int64_t row) const override { return records_->name_of(row); }
  [[nodiscard]] bool has_mask() const override { return records_->has_mask(); }
  [[nodiscard]] Record read_mask(std::int64_t row, std::vector<std::byte>& scratch) const override {
    return records_->read_mask(row, scratch);
  }
  [[nodiscard]] Record read(std::int64_t row, std::vector<std::byte>& scratch) const override {
    if (const CachedImage* const image = find(row)) {
      if (!file_) return {image->pixels, image->raw};
      const std::span<std::byte> pixels = room_in(scratch, image->bytes);
      if (file_->read(image->offset, pixels)) return {pixels, image->raw};
    }
    const Record record = records_->read(row, scratch);
    if (record.raw || is_full_) return record;
    return decoded(row, record);
  }

 private:
  /// Valid as long as the records: nothing is taken out of the cache.
  [[nodiscard]] const CachedImage* find(std::int64_t row) const {
    const std::shared_lock lock(mutex_);
    const auto found = images_.find(row);
    return found == images_.end() ? nullptr : &found->second;
  }

  /// Keeps the pixels of the record if they fit, and returns them, else the record.
  [[nodiscard]] Record decoded(std::int64_t row, const Record& record) const {
    const ImageInfo info = [&] {
      try {
        return read_image_info(record.bytes);
      } catch (const FormatError&) {
        return ImageInfo{};  // the caller finds the same
      }
    }();
    const auto bytes = static_cast<std::uint64_t>(info.height * info.width * options_.channels);
    if (bytes == 0) return record;
    const std::uint64_t offset = options_.used->fetch_add(bytes);
    if (offset + bytes > options_.bytes) {
      stop(fmt::format("holds {} images, its budget is used up", count()));
      return record;
    }
    thread_local Image image;
    try {
      decode_image(record.bytes, options_.channels, image);
    } catch (const FormatError&) {
      return record;
    }
    thread_local std::vector<std::byte> of_thread;
    std::vector<std::byte> own(file_ ? 0 : bytes);
    const std::span<std::byte> pixels = file_ ? room_in(of_thread, bytes) : std::span(own);
    to_planes(image, false, {reinterpret_cast<std::uint8_t*>(pixels.data()), pixels.size()});
    if (file_ && !file_->write(offset, pixels)) {
      stop(fmt::format("cannot grow: {}", std::strerror(errno)));
      return record;
    }
    const RawImage raw{options_.channels, image.height, image.width};
    const std::unique_lock lock(mutex_);
    // Another thread may have been first.
    const auto kept = images_.try_emplace(row, CachedImage{raw, std::move(own), offset, bytes}).first;
    return {file_ ? pixels : std::span<const std::byte>(kept->second.pixels), raw};
  }

  [[nodiscard]] std::size_t count() const {
    const std::shared_lock lock(mutex_);
    return images_.size();
  }
  void stop(const std::string& why) const {
    if (!is_full_.exchange(true)) log(LogLevel::info, fmt::format("{}: the cache {}", name, why));
  }

  RecordsPtr records_;
  CacheOptions options_;
  std::optional<CacheFile> file_;
  mutable std::atomic<bool> is_full_ = false;
  mutable std::shared_mutex mutex_;  // guards images_
  mutable std::unordered_map<std::int64_t, CachedImage> images_;
};

}  // namespace

RecordsPtr cached(RecordsPtr records, const CacheOptions& options) {
  CONCORD_CHECK(records && (options.channels == 1 || options.channels == 3), ArgumentError,
                "a cache needs records, and images of 1 or 3 channels");
  return std::make_shared<CachedRecords>(std::move(records), options);
}

}  // namespace concord::data
