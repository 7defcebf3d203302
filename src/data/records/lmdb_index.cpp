// The walk over a database, and its index as bytes.
#include "concord/data/records/lmdb_index.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "concord/core/check.hpp"
#include "concord/core/utf8.hpp"
#include "concord/data/records/datum.hpp"
#include "concord/data/records/index_file.hpp"
#include "concord/data/records/lmdb_pages.hpp"

namespace concord::data {
namespace {

constexpr std::string_view kLmdbIndexKind = "concord lmdb index 1\n";

// Small: of an image, only the pages where its message begins and ends are touched.
constexpr std::size_t kWindowBytes = 256;

DatumHead head_of(const StoredFile& file, const LmdbPages& pages, const LmdbEntry& entry) {
  std::array<std::byte, LmdbPages::kHeaderBytes + kWindowBytes> window{};
  bool is_first = true;
  return read_datum_head(entry.bytes, [&](std::uint64_t offset) -> std::span<const std::byte> {
    if (entry.page == 0) return entry.content.subspan(static_cast<std::size_t>(offset));
    if (std::exchange(is_first, false)) return pages.read_first(entry, window);
    const auto part =
        std::span(window).first(static_cast<std::size_t>(std::min<std::uint64_t>(entry.bytes - offset, kWindowBytes)));
    file.read(entry.offset + offset, part);
    return part;
  });
}

}  // namespace

LmdbIndex scan_lmdb(const StoredFile& file, const std::string& name) {
  const LmdbPages pages(file, name);
  LmdbIndex index;
  pages.for_each([&](const LmdbEntry& entry) {
    DatumHead head;
    try {
      CONCORD_CHECK(entry.bytes > 0, FormatError, "the value is empty");
      head = head_of(file, pages, entry);
      CONCORD_CHECK(head.has_floats || head.data_bytes > 0, FormatError, "the value has no data");
    } catch (const FormatError& error) {
      index.damaged.add(fmt::format("{}: {}", entry.key, error.what()));
      return;
    }
    CONCORD_CHECK(
        !head.has_floats, NotSupported,
        "{}: {} has float_data; images of u8 are supported: write them as `data`, and features of f32 as .npy", name,
        printable(entry.key));
    if (!head.label) index.unlabelled.add(entry.key);
    index.rows.push_back({.offset = entry.offset + head.data_offset,
                          .bytes = head.data_bytes,
                          .channels = head.channels,
                          .height = head.height,
                          .width = head.width,
                          .label = head.label.value_or(0),
                          .is_encoded = head.is_encoded});
    index.keys.add(entry.key);
  });
  return index;
}

std::string serialise_lmdb_index(const LmdbIndex& index, const FileStamp& file) {
  IndexWriter writer(kLmdbIndexKind, file);
  writer.number(index.rows.size());
  for (std::size_t i = 0; i < index.rows.size(); ++i) {
    const LmdbRow& row = index.rows[i];
    writer.number(row.offset);
    writer.number(row.bytes);
    for (const std::int32_t value : {row.channels, row.height, row.width, row.label}) {
      writer.number(static_cast<std::uint32_t>(value));
    }
    writer.number(row.is_encoded ? 1 : 0);
    writer.text(index.keys[i]);
  }
  writer.left_out(index.damaged);
  writer.left_out(index.unlabelled);
  return writer.finish();
}

LmdbIndex parse_lmdb_index(std::span<const std::byte> bytes, const FileStamp& file, const std::string& name) {
  IndexReader reader(bytes, kLmdbIndexKind, file, name);
  LmdbIndex index;
  for (std::uint64_t left = reader.number(); left > 0; --left) {
    LmdbRow row;
    row.offset = reader.number();
    row.bytes = reader.number();
    reader.check(row.offset <= file.bytes && row.bytes <= file.bytes - row.offset, "has a value outside the database");
    for (std::int32_t* const value : {&row.channels, &row.height, &row.width, &row.label}) {
      *value = static_cast<std::int32_t>(static_cast<std::uint32_t>(reader.number()));
    }
    row.is_encoded = reader.number() != 0;
    index.rows.push_back(row);
    index.keys.add(reader.text());
  }
  index.damaged = reader.left_out();
  index.unlabelled = reader.left_out();
  reader.expect_end();
  return index;
}

LmdbIndex lmdb_index_of(const std::filesystem::path& path, const StoredFile& file) {
  LmdbIndex index;
  use_index(
      path,
      [&](std::span<const std::byte> bytes, const std::string& name) {
        index = parse_lmdb_index(bytes, file.stamp(), name);
      },
      [&] {
        index = scan_lmdb(file, printable(path.string()));
        return serialise_lmdb_index(index, file.stamp());
      });
  return index;
}

}  // namespace concord::data
