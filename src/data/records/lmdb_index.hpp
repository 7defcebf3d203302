// LmdbIndex: where the images of a database lie, and their labels. Internal to the module; used by lmdb.cpp.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "concord/data/records/left_out.hpp"
#include "concord/data/records/name_table.hpp"
#include "concord/data/records/stored_file.hpp"

namespace concord::data {

struct LmdbRow {
  std::uint64_t offset = 0, bytes = 0;  // in the file: of an image's file, or of pixels
  std::int32_t channels = 0, height = 0, width = 0;
  std::int32_t label = 0;
  bool is_encoded = false;
};

struct LmdbIndex {
  std::vector<LmdbRow> rows;  // in the order of keys
  NameTable keys;             // one for each
  LeftOut damaged;            // values that are left out
  LeftOut unlabelled;         // rows of which the value has no label
};

/// Walks over the pages of a database, and of each image over the beginning and the end. Throws FormatError with `name`
/// for damaged pages, and NotSupported for float_data.
[[nodiscard]] LmdbIndex scan_lmdb(const StoredFile& file, const std::string& name);

[[nodiscard]] std::string serialise_lmdb_index(const LmdbIndex& index, const FileStamp& file);
[[nodiscard]] LmdbIndex parse_lmdb_index(std::span<const std::byte> bytes, const FileStamp& file,
                                         const std::string& name);

/// From "<path>.idx", or made and kept there (index_file.hpp).
[[nodiscard]] LmdbIndex lmdb_index_of(const std::filesystem::path& path, const StoredFile& file);

}  // namespace concord::data
