// Fuzzing the readers of stored samples: a file is refused with an error that names it, or all its samples are read.
// CONCORD_FUZZ_READ is one of the functions below.
#include <unistd.h>
#include <zlib.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "concord/core/atomic_file.hpp"
#include "concord/core/error.hpp"
#include "concord/data/records/array_file.hpp"
#include "concord/data/records/index_file.hpp"
#include "concord/data/records/lmdb_index.hpp"
#include "concord/data/records/open.hpp"
#include "concord/data/records/sample_list.hpp"
#include "concord/data/records/shard_names.hpp"
#include "concord/data/records/tar_index.hpp"

namespace {

using namespace concord;

std::filesystem::path file_with(std::string_view bytes) {
  static const auto path = std::filesystem::path("/dev/shm") / ("concord-fuzz-records-" + std::to_string(getpid()));
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

[[maybe_unused]] void read_all(const data::Records& records) {
  std::vector<std::byte> scratch;
  for (std::int64_t row = 0; row < records.size(); ++row) {
    static_cast<void>(records.name_of(row));
    try {
      static_cast<void>(records.read(row, scratch));
    } catch (const FormatError&) {  // pixels of another size
    }
  }
}

[[maybe_unused]] void read_list(std::string_view text) {
  const data::SampleList list = data::parse_sample_list(text, "fuzz.txt", {});
  for (const Column& column : list.labels) {
    if (column.values.shape()[0] != static_cast<std::int64_t>(list.paths.size())) std::abort();
  }
}

[[maybe_unused]] void read_names(std::string_view text) {
  if (data::expand_braces(std::string(text)).size() > data::kMostShards) std::abort();
}

[[maybe_unused]] void read_tar(std::string_view bytes) {
  const data::StoredFile file(file_with(bytes));
  const data::TarIndex index = data::scan_tar(file, "fuzz.tar");
  for (const data::TarSample& sample : index.samples) {
    for (const data::TarRange& range : {sample.image, sample.mask}) {
      if (range.offset + range.bytes > bytes.size()) std::abort();
    }
  }
  const std::string stored = data::serialise_tar_index(index, file.stamp());
  const data::TarIndex again = data::parse_tar_index(std::as_bytes(std::span(stored)), file.stamp(), "fuzz.idx");
  if (data::serialise_tar_index(again, file.stamp()) != stored) std::abort();
}

// An index of `kind` with these bytes after its beginning; its checksum is right, so that not all is refused for it.
[[maybe_unused]] std::string index_of_kind(std::string_view kind, const data::FileStamp& stamp,
                                           std::string_view bytes) {
  std::string text = data::IndexWriter(kind, stamp).finish();
  text.resize(text.size() - 4);
  text += bytes;
  const auto sum = static_cast<std::uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(text.data()), text.size()));
  return text.append(reinterpret_cast<const char*>(&sum), sizeof sum);
}

[[maybe_unused]] void read_index(std::string_view bytes) {
  constexpr data::FileStamp kStamp = {.bytes = 10'000, .modified = 1};
  const std::string tar = index_of_kind("concord tar index 1\n", kStamp, bytes);
  const std::string lmdb = index_of_kind("concord lmdb index 1\n", kStamp, bytes);
  try {
    for (const data::TarSample& sample : data::parse_tar_index(std::as_bytes(std::span(tar)), kStamp, "fuzz").samples) {
      if (sample.image.offset + sample.image.bytes > kStamp.bytes) std::abort();
    }
  } catch (const FormatError&) {
  }
  for (const data::LmdbRow& row : data::parse_lmdb_index(std::as_bytes(std::span(lmdb)), kStamp, "fuzz").rows) {
    if (row.offset + row.bytes > kStamp.bytes) std::abort();
  }
}

[[maybe_unused]] void read_lmdb(std::string_view bytes) {
  const std::filesystem::path path = file_with(bytes);
  const data::StoredFile file(path);
  const data::LmdbIndex index = data::scan_lmdb(file, "fuzz.mdb");
  const std::string stored = data::serialise_lmdb_index(index, file.stamp());
  const data::LmdbIndex again = data::parse_lmdb_index(std::as_bytes(std::span(stored)), file.stamp(), "fuzz.idx");
  if (data::serialise_lmdb_index(again, file.stamp()) != stored) std::abort();
  write_file_atomically(path.string() + ".idx", std::as_bytes(std::span(stored)), Durability::cached);
  read_all(*data::open_lmdb(path, {}));
}

[[maybe_unused]] void read_array(std::string_view bytes) {
  const auto image = data::read_array_head(std::as_bytes(std::span(bytes)));
  if (image && (image->channels < 0 || image->height < 0 || image->width < 0)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    CONCORD_FUZZ_READ(bytes);
  } catch (const FormatError&) {
  } catch (const ArgumentError&) {
  } catch (const NotSupported&) {
  }
  return 0;
}
