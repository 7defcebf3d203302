// The table of element types, and a loop for each pair that is converted.
#include "concord/io/element.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>

#include "concord/core/bf16.hpp"
#include "concord/core/fp16.hpp"
#include "concord/io/left_out.hpp"

namespace concord::io {
namespace {

constexpr Element kElements[] = {{"F32", 4, DType::f32},   {"F16", 2, DType::f16},       {"BF16", 2, DType::bf16},
                                 {"I32", 4, DType::i32},   {"U8", 1, DType::u8},         {"BOOL", 1, std::nullopt},
                                 {"I8", 1, std::nullopt},  {"F8_E5M2", 1, std::nullopt}, {"F8_E4M3", 1, std::nullopt},
                                 {"I16", 2, std::nullopt}, {"U16", 2, std::nullopt},     {"U32", 4, std::nullopt},
                                 {"F64", 8, std::nullopt}, {"I64", 8, std::nullopt},     {"U64", 8, std::nullopt}};

float from_bf16(std::uint16_t bits) { return Bf16{bits}; }

float from_f16(std::uint16_t bits) { return Fp16{bits}; }

/// 5 bits of exponent and 2 of mantissa: the upper half of an f16.
float from_f8_e5m2(std::uint8_t bits) { return from_f16(static_cast<std::uint16_t>(bits << 8)); }

/// 4 bits of exponent and 3 of mantissa, without infinities: 0x7F is NaN ("FP8 Formats for Deep Learning", 2022).
float from_f8_e4m3(std::uint8_t bits) {
  if ((bits & 0x7FU) == 0x7FU) return std::bit_cast<float>((bits & 0x80U) << 24 | 0x7FC00000U);
  const int exponent = (bits >> 3) & 0xF, mantissa = bits & 0x7;
  const float magnitude = exponent == 0 ? static_cast<float>(mantissa) * 0x1p-9F
                                        : std::bit_cast<float>(static_cast<std::uint32_t>(exponent + 120) << 23 |
                                                               static_cast<std::uint32_t>(mantissa) << 20);
  return (bits & 0x80U) != 0 ? -magnitude : magnitude;
}

/// By whole numbers alone, so that no mode of the processor takes small numbers for 0; infinite where |number| is too
/// large.
float from_f64(std::uint64_t bits) {
  const auto sign = static_cast<std::uint32_t>(bits >> 32) & 0x80000000U;
  const int exponent = static_cast<int>((bits >> 52) & 0x7FFU);
  const std::uint64_t fraction = bits & 0xFFFFFFFFFFFFFU;
  const auto made = [&](std::uint32_t magnitude) { return std::bit_cast<float>(sign | magnitude); };
  if (exponent == 0x7FF) {
    const auto top = static_cast<std::uint32_t>(fraction >> 29);
    return made(0x7F800000U | (fraction == 0 ? 0 : top | 0x400000U));
  }
  const int biased = exponent - 1023 + 127;
  if (exponent == 0 || biased < -24) return made(0);
  const std::uint64_t significand = fraction | std::uint64_t{1} << 52;
  const int dropped = biased > 0 ? 29 : 30 - biased;  // bits; more of them below the normal numbers
  const std::uint64_t kept = significand >> dropped, half = std::uint64_t{1} << (dropped - 1);
  const std::uint64_t rest = significand & ((half << 1) - 1);
  const std::uint64_t rounded = kept + ((rest > half || (rest == half && (kept & 1) != 0)) ? 1 : 0);
  // The hidden bit counts as one of the exponent; a carry goes into it.
  const std::uint64_t magnitude = biased > 0 ? (static_cast<std::uint64_t>(biased - 1) << 23) + rounded : rounded;
  return made(static_cast<std::uint32_t>(std::min<std::uint64_t>(magnitude, 0x7F800000U)));
}

template <class Stored, class Kept, class Convert>
std::optional<Misfit> convert_each(std::span<const std::byte> numbers, std::span<Kept> to, Convert converted) {
  for (std::size_t i = 0; i < to.size(); ++i) {
    Stored stored{};
    std::memcpy(&stored, numbers.data() + i * sizeof stored, sizeof stored);
    if (!converted(stored, to[i])) return Misfit{i, fmt::format("{}", stored)};
  }
  return std::nullopt;
}

template <class Stored>
std::optional<Misfit> convert_whole(std::span<const std::byte> numbers, Tensor& to) {
  if (to.dtype() == DType::f32) {
    return convert_each<Stored>(numbers, to.values<float>(), [](Stored stored, float& kept) {
      kept = static_cast<float>(stored);
      return true;
    });
  }
  return convert_each<Stored>(numbers, to.values<std::int32_t>(), [](Stored stored, std::int32_t& kept) {
    if (!std::in_range<std::int32_t>(stored)) return false;
    kept = static_cast<std::int32_t>(stored);
    return true;
  });
}

template <class Bits>
std::optional<Misfit> convert_narrow(std::span<const std::byte> numbers, Tensor& to, float (*widened)(Bits)) {
  return convert_each<Bits>(numbers, to.values<float>(), [widened](Bits stored, float& kept) {
    kept = widened(stored);
    return true;
  });
}

std::optional<Misfit> convert_double(std::span<const std::byte> numbers, Tensor& to) {
  return convert_each<double>(numbers, to.values<float>(), [](double stored, float& kept) {
    kept = from_f64(std::bit_cast<std::uint64_t>(stored));
    return !std::isinf(kept) || std::isinf(stored);
  });
}

}  // namespace

const Element* find_element(std::string_view name) {
  const auto* const found = std::ranges::find(kElements, name, &Element::name);
  return found == std::end(kElements) ? nullptr : found;
}

const Element& element_of(DType type) { return *std::ranges::find(kElements, std::optional(type), &Element::type); }

DType natural_type(const Element& element) {
  if (element.type) return *element.type;
  const std::string_view name = element.name;
  if (name[0] == 'F') return DType::f32;
  return name == "BOOL" ? DType::u8 : DType::i32;
}

bool is_convertible(const Element& from, DType to) {
  const std::string_view name = from.name;
  const bool is_floating = name[0] == 'F' || name == "BF16";
  if (to == DType::f32) return is_floating;
  return from.type == to || (to == DType::i32 && !is_floating) || (to == DType::u8 && name == "BOOL");
}

bool is_convertible(const Element& from, DType to, std::string_view tensor) {
  const bool is_counter = to == DType::f32 && tensor.ends_with(kBatchCounter);
  return is_convertible(from, to) || (is_counter && is_convertible(from, DType::i32));
}

std::optional<Misfit> convert(const Element& from, std::span<const std::byte> numbers, Tensor& to) {
  const std::string_view name = from.name;
  if (from.type == to.dtype() || to.dtype() == DType::u8) {
    std::ranges::copy(numbers, to.bytes().begin());
    return std::nullopt;
  }
  if (name == "F16") return convert_narrow(numbers, to, from_f16);
  if (name == "BF16") return convert_narrow(numbers, to, from_bf16);
  if (name == "F8_E5M2") return convert_narrow(numbers, to, from_f8_e5m2);
  if (name == "F8_E4M3") return convert_narrow(numbers, to, from_f8_e4m3);
  if (name == "F64") return convert_double(numbers, to);
  if (name == "I8") return convert_whole<std::int8_t>(numbers, to);
  if (name == "U8" || name == "BOOL") return convert_whole<std::uint8_t>(numbers, to);
  if (name == "I32") return convert_whole<std::int32_t>(numbers, to);
  if (name == "I16") return convert_whole<std::int16_t>(numbers, to);
  if (name == "U16") return convert_whole<std::uint16_t>(numbers, to);
  if (name == "U32") return convert_whole<std::uint32_t>(numbers, to);
  if (name == "I64") return convert_whole<std::int64_t>(numbers, to);
  return convert_whole<std::uint64_t>(numbers, to);
}

}  // namespace concord::io
