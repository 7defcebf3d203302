// vocab.json and merges.txt.
#include "concord/data/bpe/bpe_tables.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "concord/core/check.hpp"
#include "concord/core/json.hpp"
#include "concord/core/utf8.hpp"

namespace concord::data {
namespace {

/// The bytes that characters stand for: bytes that print for themselves, the others from U+0100 on.
class ByteCharacters {
 public:
  ByteCharacters() {
    std::size_t others = 0;
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const bool prints = (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
      bytes_[prints ? byte : 256 + others++] = static_cast<int>(byte);
    }
  }
  /// Nothing if a character stands for no byte. `text` is UTF-8.
  [[nodiscard]] std::optional<std::string> decode(std::string_view text) const {
    std::string bytes;
    for (std::size_t i = 0; i < text.size();) {
      const auto first = static_cast<unsigned char>(text[i]);
      std::size_t character = first;
      if (first >= 0xe0 || (first >= 0x80 && i + 1 >= text.size())) return std::nullopt;
      if (first >= 0x80) character = (first & 0x1fU) << 6U | (static_cast<unsigned char>(text[++i]) & 0x3fU);
      ++i;
      if (character >= bytes_.size() || bytes_[character] < 0) return std::nullopt;
      bytes += static_cast<char>(static_cast<unsigned char>(bytes_[character]));
    }
    return bytes;
  }

 private:
  std::array<int, 324> bytes_ = [] {
    std::array<int, 324> none{};
    none.fill(-1);
    return none;
  }();
};

using TokenNumbers = std::unordered_map<std::string, std::int32_t>;  // by bytes

TokenNumbers read_vocab(const nlohmann::json& json, const std::string& name, const ByteCharacters& characters,
                        BpeTables& tables) {
  CONCORD_CHECK(json.is_object() && !json.empty(), FormatError, "{}: is no object of tokens and their numbers", name);
  // Numbers that are left out are few; a number decides how much memory there is.
  const std::int64_t most = static_cast<std::int64_t>(json.size()) + 65536;
  TokenNumbers numbers;
  numbers.reserve(json.size());
  for (const auto& [text, value] : json.items()) {
    std::int64_t number = -1;
    if (value.is_number_unsigned() && value.get<std::uint64_t>() < static_cast<std::uint64_t>(most)) {
      number = value.get<std::int64_t>();
    }
    CONCORD_CHECK(number >= 0, FormatError, "{}: the token \"{}\" has no whole number from 0 to {}", name,
                  printable(text), most - 1);
    const auto index = static_cast<std::size_t>(number);
    if (index >= tables.tokens.size()) {
      tables.tokens.resize(index + 1);
      tables.is_token.resize(index + 1);
    }
    CONCORD_CHECK(!tables.is_token[index], FormatError, "{}: the token \"{}\" has the number {} of another one", name,
                  printable(text), number);
    const std::optional<std::string> bytes = characters.decode(text);
    tables.is_token[index] = true;
    tables.tokens[index] = bytes.value_or(text);
    if (bytes) numbers.emplace(*bytes, static_cast<std::int32_t>(number));
  }
  for (std::size_t byte = 0; byte < tables.of_byte.size(); ++byte) {
    const auto found = numbers.find(std::string(1, static_cast<char>(static_cast<unsigned char>(byte))));
    tables.of_byte[byte] = found == numbers.end() ? -1 : found->second;
  }
  return numbers;
}

void read_merges(std::string_view text, const std::string& name, const ByteCharacters& characters,
                 const TokenNumbers& numbers, BpeTables& tables) {
  tables.merges = MergeTable(static_cast<std::size_t>(std::ranges::count(text, '\n')) + 1);
  std::int32_t rank = 0;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || (number == 1 && line.starts_with("#version"))) continue;
    const std::size_t blank = line.find(' ');
    const bool is_pair = blank != std::string_view::npos && blank > 0 && blank + 1 < line.size() &&
                         line.find(' ', blank + 1) == std::string_view::npos && is_utf8(line);
    CONCORD_CHECK(is_pair, FormatError, "{}, line {}: \"{}\" are not two tokens", name, number, printable(line));
    const auto bytes_of = [&](std::string_view token) {
      std::optional<std::string> bytes = characters.decode(token);
      CONCORD_CHECK(bytes, FormatError, "{}, line {}: \"{}\" has a character that stands for no byte", name, number,
                    printable(token));
      return *std::move(bytes);
    };
    const auto token_of = [&](const std::string& bytes) {
      const auto found = numbers.find(bytes);
      CONCORD_CHECK(found != numbers.end(), FormatError, "{}, line {}: the vocabulary lacks \"{}\"", name, number,
                    printable(bytes));
      return found->second;
    };
    const std::string first = bytes_of(line.substr(0, blank)), second = bytes_of(line.substr(blank + 1));
    const Merge merge{rank++, token_of(first + second)};
    CONCORD_CHECK(tables.merges.add(token_of(first), token_of(second), merge), FormatError,
                  "{}, line {}: these two tokens are merged by a line before", name, number);
  }
}

}  // namespace

MergeTable::MergeTable(std::size_t merges) {
  const std::size_t size = std::bit_ceil(std::max<std::size_t>(2, merges * 2));
  entries_.resize(size);
  shift_ = 64 - std::countr_zero(size);
}

bool MergeTable::add(std::int32_t first, std::int32_t second, Merge merge) {
  const std::uint64_t key = key_of(first, second);
  std::size_t i = slot_of(key);
  for (; entries_[i].key != kFree; i = (i + 1) & (entries_.size() - 1)) {
    if (entries_[i].key == key) return false;
  }
  entries_[i] = {key, merge};
  return true;
}

BpeTables parse_bpe_tables(std::string_view vocab, const std::string& vocab_name, std::string_view merges,
                           const std::string& merges_name) {
  const ByteCharacters characters;
  BpeTables tables;
  const TokenNumbers numbers = read_json(
      vocab, vocab_name, [&](const nlohmann::json& json) { return read_vocab(json, vocab_name, characters, tables); });
  read_merges(merges, merges_name, characters, numbers, tables);
  return tables;
}

}  // namespace concord::data
