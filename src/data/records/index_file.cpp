// The file of an index, and when it is made again.
#include "concord/data/records/index_file.hpp"

#include <zlib.h>

#include <system_error>
#include <utility>
#include <vector>

#include "concord/core/atomic_file.hpp"
#include "concord/core/check.hpp"
#include "concord/core/log.hpp"
#include "concord/core/utf8.hpp"

namespace concord::data {
namespace {

constexpr std::string_view kEveryIndex = "concord ";
constexpr std::size_t kSumBytes = 4;
constexpr std::uint64_t kMostIndexBytes = std::uint64_t{1} << 34;

std::string sum_of(std::string_view bytes) {
  const auto sum = crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  std::string text(kSumBytes, '\0');
  for (std::size_t i = 0; i < kSumBytes; ++i) text[i] = static_cast<char>(sum >> (8 * i) & 0xFF);
  return text;
}

enum class IndexState : std::uint8_t { good, replaceable, foreign };

IndexState parse_index(const std::filesystem::path& path,
                       const std::function<void(std::span<const std::byte>, const std::string&)>& parse) {
  std::error_code error;
  if (!std::filesystem::exists(path, error) && !error) return IndexState::replaceable;
  const std::string name = printable(path.string());
  IndexState state = IndexState::foreign;
  try {
    const StoredFile file(path);
    CONCORD_CHECK(file.stamp().bytes <= kMostIndexBytes, FormatError, "{} is too large for an index", name);
    std::vector<std::byte> bytes(static_cast<std::size_t>(file.stamp().bytes));
    file.read(0, bytes);
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (text.empty() || text.starts_with(kEveryIndex)) state = IndexState::replaceable;
    parse(bytes, name);
    return IndexState::good;
  } catch (const Error& problem) {
    if (state == IndexState::replaceable) {
      log(LogLevel::info, fmt::format("{}; it is made again", problem.what()));
    } else {
      log(LogLevel::warning,
          fmt::format("{}; it is not used, and not replaced: remove it if it is not needed", problem.what()));
    }
    return state;
  }
}

}  // namespace

IndexWriter::IndexWriter(std::string_view kind, const FileStamp& file) : bytes_(kind) {
  number(file.bytes);
  number(static_cast<std::uint64_t>(file.modified));
}

void IndexWriter::number(std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>((value & 0x7F) | 0x80);
  bytes_ += static_cast<char>(value);
}

void IndexWriter::text(std::string_view value) {
  number(value.size());
  bytes_ += value;
}

void IndexWriter::left_out(const LeftOut& files) {
  number(static_cast<std::uint64_t>(files.count));
  text(files.first);
}

std::string IndexWriter::finish() {
  bytes_ += sum_of(bytes_);
  return std::move(bytes_);
}

IndexReader::IndexReader(std::span<const std::byte> bytes, std::string_view kind, const FileStamp& file,
                         std::string name)
    : rest_(reinterpret_cast<const char*>(bytes.data()), bytes.size()), name_(std::move(name)) {
  check(rest_.starts_with(kEveryIndex), "is none");
  check(rest_.starts_with(kind), "is of another kind or version");
  check(rest_.size() >= kind.size() + kSumBytes, "ends too early");
  const std::string_view sum = rest_.substr(rest_.size() - kSumBytes);
  rest_.remove_suffix(kSumBytes);
  check(sum == sum_of(rest_), "is damaged");
  rest_.remove_prefix(kind.size());
  const std::uint64_t file_bytes = number();
  const auto modified = static_cast<std::int64_t>(number());
  check(FileStamp{file_bytes, modified} == file, "is of another file, or the file was changed");
}

void IndexReader::check(bool holds, std::string_view message) const {
  CONCORD_CHECK(holds, FormatError, "{}: the index {}", name_, message);
}

std::uint64_t IndexReader::number() {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    check(!rest_.empty(), "ends too early");
    const auto next = static_cast<unsigned char>(rest_[0]);
    rest_.remove_prefix(1);
    value |= std::uint64_t{next & 0x7Fu} << shift;
    if (next < 0x80) return value;
  }
  throw FormatError(fmt::format("{}: the index has a number of more than 64 bits", name_));
}

std::string_view IndexReader::text() {
  const std::uint64_t bytes = number();
  check(bytes <= rest_.size(), "ends too early");
  const std::string_view taken = rest_.substr(0, static_cast<std::size_t>(bytes));
  rest_.remove_prefix(taken.size());
  return taken;
}

LeftOut IndexReader::left_out() {
  LeftOut files;
  files.count = static_cast<std::int64_t>(number());
  files.first = text();
  return files;
}

void use_index(const std::filesystem::path& path,
               const std::function<void(std::span<const std::byte> bytes, const std::string& name)>& parse,
               const std::function<std::string()>& make) {
  std::filesystem::path index = path;
  index += ".idx";
  const IndexState state = parse_index(index, parse);
  if (state == IndexState::good) return;
  const std::string bytes = make();
  if (state == IndexState::foreign) return;
  try {
    write_file_atomically(index, std::as_bytes(std::span(bytes)), Durability::cached);
  } catch (const IoError& error) {  // a folder that is only read
    log(LogLevel::debug, fmt::format("the index is not kept: {}", error.what()));
  }
}

}  // namespace concord::data
