// Samples cut from the numbers of a text, for language models. Internal to the module; text.cpp and bpe/tokens.cpp use
// it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "concord/data/dataset.hpp"

namespace concord::data {

struct TextParts {
  Dataset train, validation;
};

/// Features i32 [N, length] and as labels the numbers one place further on. The end of the text, `validation_part` of
/// it, is for validation; with 0 there is none. `stride` 0 is the length. Throws ArgumentError that begins with `name`
/// if an option is out of range, or a part shorter than a sample and one more; `unit` is "characters" or "tokens".
[[nodiscard]] TextParts text_parts(std::span<const std::int32_t> numbers, std::int64_t length, std::int64_t stride,
                                   double validation_part, const std::string& name, std::string_view unit);

}  // namespace concord::data
