// Texts as samples of tokens.
#include <utility>

#include "concord/core/check.hpp"
#include "concord/core/platform.hpp"
#include "concord/core/utf8.hpp"
#include "concord/data/bpe.hpp"
#include "concord/data/text_samples.hpp"

namespace concord::data {

Tokens tokens(std::span<const std::filesystem::path> files, const Bpe& bpe, const TokenOptions& options) {
  CONCORD_CHECK(!files.empty(), ArgumentError, "tokens: no file is given");
  std::vector<std::int32_t> numbers;
  for (const std::filesystem::path& file : files) {
    try {
      const std::vector<std::int32_t> part = bpe.encode(read_file(file));
      numbers.insert(numbers.end(), part.begin(), part.end());
    } catch (const ArgumentError& error) {
      throw ArgumentError(fmt::format("{}, {}", printable(file.string()), error.what()));
    }
  }
  auto [train, validation] =
      text_parts(numbers, options.length, options.stride, options.validation_part, files[0].string(), "tokens");
  Tokens result{std::move(train), std::move(validation)};
  for (Dataset* part : {&result.train, &result.validation}) {
    part->name = files[0].filename().string();
    part->classes = static_cast<int>(bpe.size());
  }
  return result;
}

}  // namespace concord::data
