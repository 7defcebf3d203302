// The format of LMDB 0.9 on 64-bit little-endian machines (lmdb's mdb.c: MDB_meta, MDB_page, MDB_node). A tree of
// pages: two pages of metadata, of which the one with the larger transaction holds; branches; leaves with keys and
// small values; and runs of pages with a large value each. Every offset is checked before it is used.
#include "concord/data/records/lmdb_pages.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <utility>
#include <vector>

#include "concord/core/check.hpp"

namespace concord::data {
namespace {

// Offsets in a page of metadata, behind the header of the page.
constexpr std::size_t kMagicAt = 16, kVersionAt = 20, kPageBytesAt = 40, kMainFlagsAt = 92, kMainEntriesAt = 120,
                      kMainRootAt = 128, kTransactionAt = 144, kMetaBytes = 152;
constexpr std::size_t kMagicAt32 = 12;  // of 32-bit machines, whose header is shorter
constexpr std::uint32_t kMagic = 0xBEEFC0DE, kVersion = 1;
constexpr std::uint64_t kNoPage = std::numeric_limits<std::uint64_t>::max();
// Of a database: several values of one key.
constexpr std::uint32_t kHasDuplicates = 0x04;

// Offsets and flags in the header of a page.
constexpr std::size_t kFlagsAt = 10, kLowerAt = 12, kUpperAt = 14;
constexpr std::uint32_t kBranch = 0x01, kLeaf = 0x02, kOverflow = 0x04, kMeta = 0x08, kKinds = 0x6F;

// A node: its size or, in a branch, its page; flags; the length of its key; the key.
constexpr std::size_t kNodeFlagsAt = 4, kKeyBytesAt = 6, kNodeHeader = 8;
constexpr std::uint32_t kLargeValue = 0x01, kDatabase = 0x02, kDuplicates = 0x04;

constexpr int kMostDepth = 32;
constexpr std::uint64_t kMetaPages = 2;

std::uint64_t number_at(std::span<const std::byte> bytes, std::size_t at, std::size_t size) {
  std::uint64_t value = 0;
  for (std::size_t i = size; i-- > 0;) value = value << 8 | std::to_integer<std::uint64_t>(bytes[at + i]);
  return value;
}

std::uint32_t u16_at(std::span<const std::byte> bytes, std::size_t at) {
  return static_cast<std::uint32_t>(number_at(bytes, at, 2));
}

std::uint32_t u32_at(std::span<const std::byte> bytes, std::size_t at) {
  return static_cast<std::uint32_t>(number_at(bytes, at, 4));
}

std::uint32_t swapped(std::uint32_t value) {
  return value >> 24 | (value >> 8 & 0xFF00) | (value << 8 & 0xFF0000) | value << 24;
}

}  // namespace

struct LmdbPages::Walk {
  const std::function<void(const LmdbEntry&)>& take;
  std::uint64_t visited = 0, taken = 0;
};

void LmdbPages::fail(std::uint64_t page, std::string_view message) const {
  throw FormatError(fmt::format("{}, byte {}: {}", name_, page * page_bytes_, message));
}

void LmdbPages::check(bool holds, std::uint64_t page, std::string_view message) const {
  if (!holds) fail(page, message);
}

LmdbPages::LmdbPages(const StoredFile& file, std::string name) : file_(file), name_(std::move(name)) {
  std::array<std::byte, kMetaBytes> first{}, second{};
  const std::size_t there = file.read_some(0, first);
  CONCORD_CHECK(there == kMetaBytes, FormatError, "{}: the file has {} bytes; it is no LMDB database, or is cut off",
                name_, there);
  for (const std::size_t at : {kMagicAt, kMagicAt32}) {
    const std::uint32_t magic = u32_at(first, at);
    CONCORD_CHECK(magic != swapped(kMagic), FormatError,
                  "{} was written by a big-endian machine, and LMDB databases cannot be read on another kind: make it "
                  "again here, or use mdb_dump there and mdb_load here",
                  name_);
    CONCORD_CHECK(
        magic != kMagic || at == kMagicAt, FormatError,
        "{} was written by a 32-bit machine, and LMDB databases cannot be read on another kind: make it again "
        "here, or use mdb_dump there and mdb_load here",
        name_);
  }
  CONCORD_CHECK(u32_at(first, kMagicAt) == kMagic, FormatError, "{} is no LMDB database", name_);
  CONCORD_CHECK(u32_at(first, kVersionAt) == kVersion, FormatError,
                "{}: LMDB's format {} is not supported; version {} of LMDB 0.9 is", name_, u32_at(first, kVersionAt),
                kVersion);
  page_bytes_ = u32_at(first, kPageBytesAt);
  check(std::has_single_bit(page_bytes_) && page_bytes_ >= 512 && page_bytes_ <= 65536, 0, "the page size is damaged");
  pages_ = file.stamp().bytes / page_bytes_;
  check(pages_ >= kMetaPages, 0, "the database is cut off");
  const std::uint64_t other = page_bytes_;
  file.read(other, second);
  check(u32_at(second, kMagicAt) == kMagic && u32_at(second, kVersionAt) == kVersion, 1, "the metadata is damaged");
  check((u16_at(first, kFlagsAt) & kMeta) != 0 && (u16_at(second, kFlagsAt) & kMeta) != 0, 0,
        "the metadata is damaged");
  const auto& meta = number_at(second, kTransactionAt, 8) > number_at(first, kTransactionAt, 8) ? second : first;
  CONCORD_CHECK((u16_at(meta, kMainFlagsAt) & kHasDuplicates) == 0, NotSupported,
                "{} has several values of a key (MDB_DUPSORT); samples have one each", name_);
  root_ = number_at(meta, kMainRootAt, 8);
  entries_ = root_ == kNoPage ? 0 : number_at(meta, kMainEntriesAt, 8);
}

void LmdbPages::for_each(const std::function<void(const LmdbEntry&)>& take) const {
  Walk state{.take = take};
  if (root_ != kNoPage) walk(root_, 1, state);
  check(state.taken == entries_, 0,
        fmt::format("the metadata says {} entries, but there are {}", entries_, state.taken));
}

void LmdbPages::walk(std::uint64_t number, int depth, Walk& state) const {
  check(number < pages_, std::min(number, pages_), "a page lies outside the file; the database is cut off or damaged");
  check(depth <= kMostDepth && ++state.visited <= pages_, number, "the pages form a circle");
  std::vector<std::byte> page(page_bytes_);
  file_.read(number * page_bytes_, page);
  const std::uint32_t kind = u16_at(page, kFlagsAt) & kKinds;
  check(number_at(page, 0, 8) == number && (kind == kBranch || kind == kLeaf), number, "the page is damaged");
  const std::size_t lower = u16_at(page, kLowerAt), upper = u16_at(page, kUpperAt);
  check(lower >= kHeaderBytes && lower <= upper && upper <= page_bytes_, number, "the page is damaged");
  if (kind == kLeaf) {
    take_leaf(page, number, state);
    return;
  }
  for (std::size_t at = kHeaderBytes; at + 2 <= lower; at += 2) {
    const std::size_t node = u16_at(page, at);
    check(node >= lower && node + kNodeHeader <= page_bytes_, number, "a node lies outside its page");
    walk(number_at(page, node, 6), depth + 1, state);
  }
}

void LmdbPages::take_leaf(std::span<const std::byte> page, std::uint64_t number, Walk& state) const {
  const std::size_t lower = u16_at(page, kLowerAt);
  std::size_t used = 0;  // so that a damaged page cannot have more entries than fit in it
  for (std::size_t at = kHeaderBytes; at + 2 <= lower; at += 2) {
    const std::size_t node = u16_at(page, at);
    check(node >= lower && node + kNodeHeader <= page.size(), number, "a node lies outside its page");
    const std::uint32_t flags = u16_at(page, node + kNodeFlagsAt);
    CONCORD_CHECK((flags & (kDatabase | kDuplicates)) == 0, NotSupported,
                  "{} holds several databases or several values of a key; samples lie in one database", name_);
    const std::size_t key_bytes = u16_at(page, node + kKeyBytesAt), value = node + kNodeHeader + key_bytes;
    check(value <= page.size(), number, "a key lies outside its page");
    LmdbEntry entry;
    entry.key = {reinterpret_cast<const char*>(page.data()) + node + kNodeHeader, key_bytes};
    entry.bytes = number_at(page, node, 4);
    if ((flags & kLargeValue) != 0) {
      check(page.size() - value >= 8, number, "a value lies outside its page");
      const std::uint64_t first = number_at(page, value, 8);
      check(first >= kMetaPages && first < pages_ && kHeaderBytes + entry.bytes <= (pages_ - first) * page_bytes_,
            number, "a value lies outside the file; the database is cut off or damaged");
      entry.page = first * page_bytes_;
      entry.offset = entry.page + kHeaderBytes;
    } else {
      check(entry.bytes <= page.size() - value, number, "a value lies outside its page");
      entry.offset = number * page_bytes_ + value;
      entry.content = page.subspan(value, static_cast<std::size_t>(entry.bytes));
    }
    used += kNodeHeader + key_bytes + entry.content.size();
    check(used <= page.size(), number, "its nodes overlap");
    ++state.taken;
    state.take(entry);
  }
}

std::span<const std::byte> LmdbPages::read_first(const LmdbEntry& entry, std::span<std::byte> bytes) const {
  const std::span<std::byte> wanted =
      bytes.first(static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), kHeaderBytes + entry.bytes)));
  file_.read(entry.page, wanted);
  const std::uint64_t number = entry.page / page_bytes_;
  check(number_at(wanted, 0, 8) == number && (u16_at(wanted, kFlagsAt) & kKinds) == kOverflow, number,
        "the page of a value is damaged");
  return wanted.subspan(kHeaderBytes);
}

}  // namespace concord::data
