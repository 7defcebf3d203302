// Tar files in memory, and the records that they become. Used by the tests of shards.
#pragma once

#include <archive.h>
#include <archive_entry.h>

#include <string>
#include <vector>

#include "concord/core/text.hpp"
#include "concord/data/records/open.hpp"
#include "data/records/records_test.hpp"

namespace concord::test {

struct TarFile {
  std::string name, content;
  mode_t type = AE_IFREG;
  std::string target = {};  // of a link
  bool is_hard_link = false;
};

/// A tar file by libarchive, in one of its formats.
[[nodiscard]] inline std::string tar_of(const std::vector<TarFile>& files,
                                        int format = ARCHIVE_FORMAT_TAR_PAX_INTERCHANGE) {
  std::string bytes(1 << 20, '\0');
  std::size_t used = 0;
  archive* const writer = archive_write_new();
  archive_write_set_format(writer, format);
  REQUIRE(archive_write_open_memory(writer, bytes.data(), bytes.size(), &used) == ARCHIVE_OK);
  for (const TarFile& file : files) {
    archive_entry* const entry = archive_entry_new();
    archive_entry_set_pathname(entry, file.name.c_str());
    archive_entry_set_filetype(entry, file.type);
    archive_entry_set_perm(entry, 0600);
    archive_entry_set_size(entry, static_cast<la_int64_t>(file.content.size()));
    if (!file.target.empty() && !file.is_hard_link) archive_entry_set_symlink(entry, file.target.c_str());
    if (file.is_hard_link) archive_entry_set_hardlink(entry, file.target.c_str());
    REQUIRE(archive_write_header(writer, entry) >= ARCHIVE_WARN);
    archive_write_data(writer, file.content.data(), file.content.size());
    archive_entry_free(entry);
  }
  archive_write_close(writer);
  archive_write_free(writer);
  bytes.resize(used);
  return bytes;
}

[[nodiscard]] inline data::RecordsPtr open_tar_of(const TemporaryFolder& folder, const std::string& bytes,
                                                  const data::RecordOptions& options = {}) {
  std::filesystem::remove(folder / "s.tar.idx");
  write_file(folder / "s.tar", bytes);
  return data::open_tar({folder / "s.tar"}, options);
}

[[nodiscard]] inline std::vector<std::string> tar_keys(const data::Records& records) {
  std::vector<std::string> keys;
  for (std::int64_t row = 0; row < records.size(); ++row) {
    const std::string name = records.name_of(row);
    keys.push_back(name.substr(name.find(": ") + 2));
  }
  return keys;
}

[[nodiscard]] inline std::string refused_tar(const std::string& bytes) {
  const TemporaryFolder folder;
  return message_of<FormatError>([&] { (void)open_tar_of(folder, bytes); });
}

}  // namespace concord::test
