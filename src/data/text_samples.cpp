// Windows of a text.
#include "concord/data/text_samples.hpp"

#include <algorithm>

#include "concord/core/check.hpp"

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

}  // namespace

TextParts text_parts(std::span<const std::int32_t> numbers, std::int64_t length, std::int64_t stride,
                     double validation_part, const std::string& name, std::string_view unit) {
  CONCORD_CHECK(length >= 1 && stride >= 0, ArgumentError,
                "{}: the length must be positive and the stride not negative, got {} and {}", unit, length, stride);
  CONCORD_CHECK(validation_part >= 0 && validation_part < 1, ArgumentError,
                "{}: the validation part {} is outside [0, 1)", unit, validation_part);
  const auto cut = static_cast<std::size_t>(static_cast<double>(numbers.size()) * (1 - validation_part));
  const auto all = static_cast<std::int64_t>(numbers.size());
  if (stride == 0) stride = length;
  if (validation_part == 0) {
    CONCORD_CHECK(all > length, ArgumentError, "{} has {} {}; a sample of {} needs one more", name, all, unit, length);
    return {samples_of(numbers, length, stride), {}};
  }
  const auto shortest = static_cast<std::int64_t>(std::min(cut, numbers.size() - cut));
  CONCORD_CHECK(shortest > length, ArgumentError, "{}: {} {} leave {} for a part; a sample of {} needs one more", name,
                all, unit, shortest, length);
  return {samples_of(numbers.first(cut), length, stride), samples_of(numbers.subspan(cut), length, length)};
}

}  // namespace concord::data
