// The implementation for POSIX systems. pread keeps no position, so threads share a descriptor.
#include "concord/data/records/stored_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "concord/core/check.hpp"
#include "concord/core/platform.hpp"
#include "concord/core/utf8.hpp"

namespace concord::data {

namespace {

FileStamp stamp_of(const struct stat& status) {
  return {.bytes = static_cast<std::uint64_t>(status.st_size),
          .modified = std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec};
}

}  // namespace

StoredFile::StoredFile(const std::filesystem::path& path) : path_(path) {
  // A pipe would wait for its writer.
  descriptor_ = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) fail_to_open(path);
  struct stat status {};
  const bool is_file = fstat(descriptor_, &status) == 0 && S_ISREG(status.st_mode);
  if (!is_file) close(descriptor_);
  CONCORD_CHECK(is_file, IoError, "cannot read {}: not a regular file", name());
  stamp_ = stamp_of(status);
}

StoredFile::~StoredFile() { close(descriptor_); }

std::string StoredFile::name() const { return printable(path_.string()); }

bool StoredFile::is_unchanged() const {
  struct stat status {};
  return fstat(descriptor_, &status) == 0 && stamp_of(status) == stamp_;
}

std::size_t StoredFile::read_some(std::uint64_t offset, std::span<std::byte> bytes) const {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = pread(descriptor_, bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    CONCORD_CHECK(got >= 0, IoError, "cannot read {}: {}", name(), std::strerror(errno));
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

std::size_t StoredFile::read_parts(std::uint64_t offset, std::span<const std::span<std::byte>> parts) const {
  CONCORD_CHECK(parts.size() <= kMostParts, ArgumentError, "{}: {} parts at a time", name(), parts.size());
  std::array<iovec, kMostParts> places{};
  std::size_t wanted = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    places[i] = {parts[i].data(), parts[i].size()};
    wanted += parts[i].size();
  }
  ssize_t got = 0;
  do {
    got = preadv(descriptor_, places.data(), static_cast<int>(parts.size()), static_cast<off_t>(offset));
  } while (got < 0 && errno == EINTR);
  CONCORD_CHECK(got >= 0, IoError, "cannot read {}: {}", name(), std::strerror(errno));
  auto done = static_cast<std::size_t>(got);
  // The rest of a read that was cut short.
  std::size_t before = 0;
  for (const std::span<std::byte> part : parts) {
    if (done == wanted) break;
    if (done < before + part.size()) {
      const std::size_t more = read_some(offset + done, part.subspan(done - before));
      done += more;
      if (done < before + part.size()) break;  // the end of the file
    }
    before += part.size();
  }
  return done;
}

void StoredFile::read(std::uint64_t offset, std::span<std::byte> bytes) const {
  const std::size_t done = read_some(offset, bytes);
  CONCORD_CHECK(done == bytes.size(), FormatError,
                "{}: the file ends {} bytes too early; it is cut off, or was changed", name(), bytes.size() - done);
}

std::span<std::byte> room_in(std::vector<std::byte>& buffer, std::size_t bytes) {
  if (buffer.size() < bytes) buffer.resize(bytes);
  return std::span(buffer).first(bytes);
}

std::span<const std::byte> read_stored_file(const std::filesystem::path& path, std::vector<std::byte>& buffer) {
  const StoredFile file(path);
  const std::uint64_t bytes = file.stamp().bytes;
  CONCORD_CHECK(bytes <= kMostFileBytes, FormatError, "{} has {} bytes; an image has at most {}",
                printable(path.string()), bytes, kMostFileBytes);
  const std::span<std::byte> content = room_in(buffer, static_cast<std::size_t>(bytes));
  file.read(0, content);
  return content;
}

}  // namespace concord::data
