// Text: the alphabet of a file, and samples cut from it.
#include "concord/data/text.hpp"

#include <algorithm>
#include <array>

#include "concord/core/check.hpp"
#include "concord/core/platform.hpp"
#include "concord/core/utf8.hpp"
#include "concord/data/text_samples.hpp"

namespace concord::data {
namespace {

bool prints(char c) { return c > ' ' && c < '\x7f'; }

/// "'x' (0x78)"; of a character of several bytes in UTF-8 that begins here, all of it: "'é' (0xc3)".
std::string shown(std::string_view text, std::size_t at) {
  const auto byte = static_cast<unsigned char>(text[at]);
  std::size_t length = 1;
  if (byte >= 0xc2) length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
  bool whole = byte >= 0xc2 && at + length <= text.size();
  for (std::size_t i = 1; whole && i < length; ++i) {
    whole = (static_cast<unsigned char>(text[at + i]) & 0xc0U) == 0x80U;
  }
  if (!whole && !prints(text[at])) return fmt::format("{:#04x}", byte);
  return fmt::format("'{}' ({:#04x})", text.substr(at, length), byte);
}

std::vector<std::string> names_of(std::string_view alphabet) {
  std::vector<std::string> names;
  for (const char c : alphabet) {
    names.push_back(prints(c) ? std::string(1, c) : fmt::format("{:#04x}", static_cast<unsigned char>(c)));
  }
  return names;
}

}  // namespace

std::string alphabet_of(std::string_view text) {
  std::array<bool, 256> occurs{};
  for (const char c : text) occurs[static_cast<unsigned char>(c)] = true;
  std::string alphabet;
  for (std::size_t byte = 0; byte < occurs.size(); ++byte) {
    if (occurs[byte]) alphabet += static_cast<char>(byte);
  }
  return alphabet;
}

Tensor encode(std::string_view alphabet, std::string_view text) {
  Tensor numbers(DType::i32, Shape{static_cast<std::int64_t>(text.size())});
  const auto values = numbers.values<std::int32_t>();
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::size_t place = alphabet.find(text[i]);
    CONCORD_CHECK(place != std::string_view::npos, ArgumentError,
                  "byte {}: the character {} is not in the alphabet of {}", i, shown(text, i), alphabet.size());
    values[i] = static_cast<std::int32_t>(place);
  }
  return numbers;
}

std::string decode(std::string_view alphabet, std::span<const std::int32_t> numbers) {
  std::string text;
  for (const std::int32_t number : numbers) {
    CONCORD_CHECK(number >= 0 && static_cast<std::size_t>(number) < alphabet.size(), ArgumentError,
                  "the number {} is not a character: there are {}", number, alphabet.size());
    text += alphabet[static_cast<std::size_t>(number)];
  }
  return text;
}

Characters characters(std::span<const std::filesystem::path> files, const CharacterOptions& options) {
  CONCORD_CHECK(!files.empty(), ArgumentError, "characters: no file is given");
  std::string text;
  std::vector<std::size_t> starts;
  for (const std::filesystem::path& file : files) {
    starts.push_back(text.size());
    text += read_file(file);
  }
  Characters result;
  result.alphabet = options.alphabet.empty() ? alphabet_of(text) : options.alphabet;
  std::vector<std::int32_t> numbers;
  numbers.reserve(text.size());
  for (std::size_t i = 0; i < files.size(); ++i) {
    const std::size_t end = i + 1 < files.size() ? starts[i + 1] : text.size();
    try {
      const Tensor part = encode(result.alphabet, std::string_view(text).substr(starts[i], end - starts[i]));
      const auto values = part.values<std::int32_t>();
      numbers.insert(numbers.end(), values.begin(), values.end());
    } catch (const ArgumentError& error) {
      throw ArgumentError(fmt::format("{}, {}", printable(files[i].string()), error.what()));
    }
  }
  const std::string name = printable(files[0].string());
  auto [train, validation] =
      text_parts(numbers, options.length, options.stride, options.validation_part, name, "characters");
  result.train = std::move(train);
  result.validation = std::move(validation);
  for (Dataset* part : {&result.train, &result.validation}) {
    part->name = printable(files[0].filename().string());
    part->classes = static_cast<int>(result.alphabet.size());
    part->class_names = names_of(result.alphabet);
  }
  return result;
}

Characters characters(const std::filesystem::path& file, const CharacterOptions& options) {
  return characters(std::span(&file, 1), options);
}

}  // namespace concord::data
