// LmdbPages: the keys and values of an LMDB database, where they lie in its file. Internal to the module; used by
// lmdb.cpp.
//
// It reads the pages itself. liblmdb maps the file and trusts it: a file that is cut off or damaged ends the program
// there, and a mapping on a network file system or one that a fork inherits has troubles of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "concord/data/records/stored_file.hpp"

namespace concord::data {

struct LmdbEntry {
  std::string_view key;
  std::uint64_t offset = 0, bytes = 0;      // of the value in the file, which it lies inside
  std::uint64_t page = 0;                   // of a value with pages of its own: where they begin; else 0
  std::span<const std::byte> content = {};  // of a value that lies beside its key
};

class LmdbPages {
 public:
  /// Reads the beginning of a file "data.mdb". Throws FormatError with `name` if it is none, is damaged or comes from
  /// another kind of machine, and NotSupported if it holds several databases.
  LmdbPages(const StoredFile& file, std::string name);

  [[nodiscard]] std::uint64_t entries() const { return entries_; }
  /// Calls `take` for each entry, in the order of keys; what it gets is valid during the call. Touches no page that has
  /// a value alone. Throws FormatError for a damaged page.
  void for_each(const std::function<void(const LmdbEntry&)>& take) const;
  /// Reads the header of the pages that hold a value alone, with the first bytes of the value, into `bytes`, of at
  /// least kHeaderBytes. Returns the first bytes of the value.
  [[nodiscard]] std::span<const std::byte> read_first(const LmdbEntry& entry, std::span<std::byte> bytes) const;

  static constexpr std::uint64_t kHeaderBytes = 16;

 private:
  [[noreturn]] void fail(std::uint64_t page, std::string_view message) const;
  void check(bool holds, std::uint64_t page, std::string_view message) const;

  struct Walk;
  void walk(std::uint64_t page, int depth, Walk& walk) const;
  void take_leaf(std::span<const std::byte> page, std::uint64_t number, Walk& walk) const;

  const StoredFile& file_;
  std::string name_;
  std::uint64_t page_bytes_ = 0, pages_ = 0, root_ = 0, entries_ = 0;
};

}  // namespace concord::data
