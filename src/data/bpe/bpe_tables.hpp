// The tables of byte-level BPE and the files that have them. Internal to the module; bpe.cpp uses it.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace concord::data {

struct Merge {
  static constexpr std::int32_t kNever = std::numeric_limits<std::int32_t>::max();
  std::int32_t rank = kNever;
  std::int32_t token = -1;  // what two tokens become
};

/// Merges by their two tokens.
class MergeTable {
 public:
  /// `merges` is how many will be added.
  explicit MergeTable(std::size_t merges = 0);
  /// Returns false if the two tokens have a merge already.
  bool add(std::int32_t first, std::int32_t second, Merge merge);
  /// A merge of the rank kNever if there is none.
  [[nodiscard]] Merge find(std::int32_t first, std::int32_t second) const {
    const std::uint64_t key = key_of(first, second);
    for (std::size_t i = slot_of(key);; i = (i + 1) & (entries_.size() - 1)) {
      if (entries_[i].key == key) return entries_[i].merge;
      if (entries_[i].key == kFree) return {};
    }
  }

 private:
  static constexpr std::uint64_t kFree = std::numeric_limits<std::uint64_t>::max();
  struct Entry {
    std::uint64_t key = kFree;
    Merge merge;
  };
  static std::uint64_t key_of(std::int32_t first, std::int32_t second) {
    return std::uint64_t{static_cast<std::uint32_t>(first)} << 32U | static_cast<std::uint32_t>(second);
  }
  [[nodiscard]] std::size_t slot_of(std::uint64_t key) const { return key * 0x9e3779b97f4a7c15U >> shift_; }

  std::vector<Entry> entries_;  // a power of two, at least half of them free
  int shift_ = 0;
};

struct BpeTables {
  std::vector<std::string> tokens;          // the bytes of each
  std::vector<bool> is_token;               // numbers may be left out
  std::array<std::int32_t, 256> of_byte{};  // -1: none
  MergeTable merges;
};

/// The text of each file and its name for messages. Throws as Bpe::read.
[[nodiscard]] BpeTables parse_bpe_tables(std::string_view vocab, const std::string& vocab_name, std::string_view merges,
                                         const std::string& merges_name);

}  // namespace concord::data
