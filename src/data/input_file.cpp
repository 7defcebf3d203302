// InputFile: plain and gzip streams behind one face. zlib's inflate is driven here, since gzread would pass over
// bytes after the compressed data and does not say where damage is.
#include "concord/data/input_file.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "concord/core/check.hpp"
#include "concord/core/platform.hpp"
#include "concord/core/utf8.hpp"

namespace concord::data {
namespace {

// Image data shrinks to a half or a fifth. A file that claims more than this is decompressed once without being kept,
// so that a lying header cannot make us take memory out of proportion to the file.
constexpr std::uint64_t kTrustedExpansion = 16;

}  // namespace

struct InputFile::Stream {
  std::ifstream file;
  bool compressed = false;
  z_stream inflater{};
  std::array<unsigned char, 1 << 16> input{};
  bool member_ended = false;  // the last member of the gzip file is complete

  explicit Stream(const std::filesystem::path& path) : file(path, std::ios::binary) {
    if (!file.is_open()) fail_to_open(path);
    unsigned char magic[2] = {};
    file.read(reinterpret_cast<char*>(magic), 2);
    compressed = file.gcount() == 2 && magic[0] == 0x1f && magic[1] == 0x8b;
    file.clear();
    file.seekg(0);
    constexpr int kGzip = 16;
    if (compressed && inflateInit2(&inflater, MAX_WBITS + kGzip) != Z_OK) throw OutOfMemory("no memory for zlib");
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() {
    if (compressed) inflateEnd(&inflater);
  }

  // The next raw bytes of the file as input for inflate; false at its end.
  bool refill() {
    file.read(reinterpret_cast<char*>(input.data()), static_cast<std::streamsize>(input.size()));
    inflater.next_in = input.data();
    inflater.avail_in = static_cast<uInt>(file.gcount());
    return inflater.avail_in > 0;
  }

  // Up to bytes.size() bytes; fewer at the end. Sets `damage` when the compressed data is not right.
  std::size_t inflate_some(std::span<std::byte> bytes, const char*& damage) {
    inflater.next_out = reinterpret_cast<Bytef*>(bytes.data());
    inflater.avail_out = static_cast<uInt>(bytes.size());
    while (inflater.avail_out > 0 && damage == nullptr) {
      if (inflater.avail_in == 0 && !refill()) {
        if (!member_ended) damage = "the compressed data ends too early";
        break;
      }
      if (member_ended) {  // gzip files may be joined end to end
        inflateReset(&inflater);
        member_ended = false;
      }
      const int status = inflate(&inflater, Z_NO_FLUSH);
      if (status == Z_STREAM_END) {
        member_ended = true;
      } else if (status != Z_OK) {
        damage = inflater.msg != nullptr ? inflater.msg : "the compressed data is damaged";
      }
    }
    return bytes.size() - inflater.avail_out;
  }
};

InputFile::InputFile(const std::filesystem::path& path) : path_(path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  CONCORD_CHECK(!error && std::filesystem::exists(status), IoError, "cannot open {}: no such file",
                printable(path.string()));
  CONCORD_CHECK(std::filesystem::is_regular_file(status), IoError, "cannot read {}: not a regular file",
                printable(path.string()));
  stream_ = std::make_unique<Stream>(path);
  file_bytes_ = std::filesystem::file_size(path, error);
  CONCORD_CHECK(!error, IoError, "cannot read {}: {}", printable(path.string()), error.message());
}

InputFile::InputFile(InputFile&&) noexcept = default;

InputFile::~InputFile() = default;

void InputFile::fail(std::string_view field, std::string_view message) const { fail_at(field_offset_, field, message); }

void InputFile::fail_at(std::uint64_t offset, std::string_view field, std::string_view message) const {
  throw FormatError(fmt::format("{}, byte {}{}: {}: {}", path_.string(), offset,
                                stream_->compressed ? " of the decompressed data" : "", field, message));
}

std::size_t InputFile::read_some(std::span<std::byte> bytes) {
  if (stream_->compressed) {
    constexpr std::size_t kMost = std::size_t{1} << 30;  // zlib counts in 32 bits
    const char* damage = nullptr;
    std::size_t done = 0;
    while (done < bytes.size() && damage == nullptr) {
      const std::size_t wanted = std::min(bytes.size() - done, kMost);
      const std::size_t got = stream_->inflate_some(bytes.subspan(done, wanted), damage);
      done += got;
      if (got < wanted) break;
    }
    offset_ += done;
    if (damage != nullptr) fail_at(offset_, "gzip", damage);
    return done;
  }
  stream_->file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  CONCORD_CHECK(!stream_->file.bad(), IoError, "cannot read {}: {}", path_.string(), std::strerror(errno));
  const auto done = static_cast<std::size_t>(stream_->file.gcount());
  offset_ += done;
  return done;
}

void InputFile::read(std::span<std::byte> bytes, std::string_view field) {
  field_offset_ = offset_;
  const std::size_t done = read_some(bytes);
  if (done < bytes.size()) fail(field, fmt::format("the file ends after {} of {} bytes", done, bytes.size()));
}

std::uint32_t InputFile::read_u32(std::string_view field) {
  std::array<std::byte, 4> bytes{};
  read(bytes, field);
  std::uint32_t value = 0;
  for (const std::byte byte : bytes) value = value << 8 | std::to_integer<std::uint32_t>(byte);
  return value;
}

std::uint64_t InputFile::remaining() {
  if (!stream_->compressed) return file_bytes_ - std::min(file_bytes_, offset_);
  InputFile again(path_);
  std::array<std::byte, 1 << 16> chunk{};
  std::size_t got = 0;
  while ((got = again.read_some(chunk)) > 0) {
  }
  return again.offset_ - std::min(again.offset_, offset_);
}

void InputFile::require(std::uint64_t bytes, std::string_view field) {
  if (stream_->compressed && bytes / kTrustedExpansion <= file_bytes_) return;
  field_offset_ = offset_;
  const std::uint64_t there = remaining();
  if (there < bytes) fail(field, fmt::format("the header declares {} bytes, but the file has {} more", bytes, there));
}

void InputFile::expect_end() {
  field_offset_ = offset_;
  std::byte extra{};
  if (read_some({&extra, 1}) != 0) fail("end of file", "there is more data than the header declares");
}

}  // namespace concord::data
