// Text: the alphabet of a file, and samples cut from it.
#include "concord/data/text.hpp"

#include <algorithm>
#include <array>

#include "concord/core/check.hpp"
#include "concord/core/platform.hpp"

namespace concord::data {
namespace {

/// Samples of `length` numbers and of those one place further on.
Dataset samples_of(std::span<const std::int32_t> numbers, std::int64_t length, std::int64_t stride) {
  const std::int64_t count = (static_cast<std::int64_t>(numbers.size()) - length - 1) / stride + 1;
  Tensor features(DType::i32, Shape{count, length}), labels(DType::i32, Shape{count, length});
  const auto xs = features.values<std::int32_t>(), ys = labels.values<std::int32_t>();
  const auto size = static_cast<std::size_t>(length);
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    const auto sample = numbers.subspan(i * static_cast<std::size_t>(stride), size + 1);
    std::ranges::copy(sample.first(size), xs.begin() + static_cast<std::ptrdiff_t>(i * size));
    std::ranges::copy(sample.last(size), ys.begin() + static_cast<std::ptrdiff_t>(i * size));
  }
  return from_arrays(std::move(features), std::move(labels));
}

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

Characters characters(const std::filesystem::path& file, const CharacterOptions& options) {
  CONCORD_CHECK(options.length >= 1 && options.stride >= 0, ArgumentError,
                "characters: the length must be positive and the stride not negative, got {} and {}", options.length,
                options.stride);
  CONCORD_CHECK(options.validation_part > 0 && options.validation_part < 1, ArgumentError,
                "characters: the validation part {} is outside (0, 1)", options.validation_part);
  const std::string text = read_file(file);
  const auto cut = static_cast<std::size_t>(static_cast<double>(text.size()) * (1 - options.validation_part));
  const auto shortest = static_cast<std::int64_t>(std::min(cut, text.size() - cut));
  CONCORD_CHECK(shortest > options.length, ArgumentError,
                "{}: {} characters leave {} for a part; a sample of {} needs one more", file.string(), text.size(),
                shortest, options.length);
  Characters result;
  result.alphabet = options.alphabet.empty() ? alphabet_of(text) : options.alphabet;
  const Tensor numbers = [&] {
    try {
      return encode(result.alphabet, text);
    } catch (const ArgumentError& error) {
      throw ArgumentError(fmt::format("{}, {}", file.string(), error.what()));
    }
  }();
  const auto all = numbers.values<std::int32_t>();
  const std::int64_t stride = options.stride > 0 ? options.stride : options.length;
  result.train = samples_of(all.first(cut), options.length, stride);
  result.validation = samples_of(all.subspan(cut), options.length, options.length);
  for (Dataset* part : {&result.train, &result.validation}) {
    part->name = file.filename().string();
    part->classes = static_cast<int>(result.alphabet.size());
    part->class_names = names_of(result.alphabet);
  }
  return result;
}

}  // namespace concord::data
