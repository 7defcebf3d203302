// Zip archives by libzip, which checks the sum of each entry that is read to its end.
#include "concord/io/zip.hpp"

#include <fmt/format.h>
#include <zip.h>

#include <limits>

#include "concord/core/check.hpp"
#include "concord/core/utf8.hpp"

namespace concord::io {
namespace {

// Deflate makes at most 1,032 bytes of one.
constexpr std::uint64_t kMostExpansion = 1032;

std::string zip_message(int code) {
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  const std::string message = zip_error_strerror(&error);
  zip_error_fini(&error);
  return message;
}

}  // namespace

struct ZipArchive::Handle {
  zip_t* archive = nullptr;
  ~Handle() {
    if (archive != nullptr) zip_discard(archive);
  }
};

ZipArchive::ZipArchive(const std::filesystem::path& path, std::string_view what)
    : path_(path), handle_(std::make_unique<Handle>()) {
  std::error_code unknown;
  const std::uint64_t file_bytes = std::filesystem::file_size(path, unknown);
  CONCORD_CHECK(!unknown, IoError, "cannot read {}: {}", printable(path.string()), unknown.message());
  int code = 0;
  handle_->archive = zip_open(path.string().c_str(), ZIP_RDONLY, &code);
  if (handle_->archive == nullptr) {
    const std::string message = zip_message(code);
    CONCORD_CHECK(code != ZIP_ER_OPEN && code != ZIP_ER_READ, IoError, "cannot open {}: {}", printable(path.string()),
                  message);
    throw FormatError(fmt::format("{}, byte {}: this is no {}; the directory of a zip archive cannot be read: {}",
                                  printable(path.string()), file_bytes, what, message));
  }
  const auto count = static_cast<std::uint64_t>(zip_get_num_entries(handle_->archive, 0));
  for (std::uint64_t i = 0; i < count; ++i) {
    zip_stat_t stat;
    const bool is_known = zip_stat_index(handle_->archive, i, 0, &stat) == 0 && (stat.valid & ZIP_STAT_NAME) != 0 &&
                          (stat.valid & ZIP_STAT_SIZE) != 0 && (stat.valid & ZIP_STAT_COMP_SIZE) != 0;
    CONCORD_CHECK(is_known, FormatError, "{}, byte 0: entry {} of the zip archive has no name or size",
                  printable(path.string()), i);
    const std::string name = stat.name;
    const bool is_possible = stat.comp_size <= file_bytes && stat.size / kMostExpansion <= stat.comp_size &&
                             (stat.comp_method != ZIP_CM_STORE || stat.size == stat.comp_size);
    CONCORD_CHECK(is_possible, FormatError,
                  "{}, byte 0: its size of {} bytes is impossible: {} bytes of {} in the file", place_of(name),
                  stat.size, stat.comp_size, file_bytes);
    const bool is_new = entries_.emplace(name, Entry{i, stat.size}).second;
    CONCORD_CHECK(is_new, FormatError, "{}, byte 0: the zip archive has this entry twice", place_of(name));
  }
}

ZipArchive::~ZipArchive() = default;

std::string ZipArchive::place_of(std::string_view entry) const {
  return fmt::format("{}, {}", printable(path_.string()), printable(entry));
}

const ZipArchive::Entry& ZipArchive::entry_of(std::string_view name) const {
  const auto found = entries_.find(name);
  CONCORD_CHECK(found != entries_.end(), FormatError, "{}, byte 0: the zip archive has no such entry", place_of(name));
  return found->second;
}

void ZipArchive::read_into(std::string_view name, std::byte* bytes) const {
  const Entry& entry = entry_of(name);
  zip_file_t* const file = zip_fopen_index(handle_->archive, entry.index, 0);
  CONCORD_CHECK(file != nullptr, FormatError, "{}, byte 0: {}", place_of(name), zip_strerror(handle_->archive));
  std::uint64_t done = 0;
  std::string problem;
  while (done < entry.bytes && problem.empty()) {
    const std::int64_t got = zip_fread(file, bytes + done, entry.bytes - done);
    if (got <= 0) problem = got < 0 ? zip_file_strerror(file) : "the entry ends too early";
    done += got > 0 ? static_cast<std::uint64_t>(got) : 0;
  }
  std::byte beyond{};
  if (problem.empty()) {  // the sum is checked with the read that finds the end
    const std::int64_t got = zip_fread(file, &beyond, 1);
    if (got != 0) problem = got < 0 ? zip_file_strerror(file) : "the entry is longer than it says";
  }
  zip_fclose(file);
  CONCORD_CHECK(problem.empty(), FormatError, "{}, byte {}: {}", place_of(name), done, problem);
}

std::vector<std::byte> ZipArchive::read(std::string_view entry) const {
  std::vector<std::byte> bytes(entry_of(entry).bytes);
  read_into(entry, bytes.data());
  return bytes;
}

std::string ZipArchive::read_text(std::string_view entry) const {
  std::string text(entry_of(entry).bytes, '\0');
  read_into(entry, reinterpret_cast<std::byte*>(text.data()));
  return text;
}

}  // namespace concord::io
