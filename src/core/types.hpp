// Element types of tensors and the precision of a compile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace concord {

enum class DType : std::uint8_t { f32, f16, bf16, i32, u8 };

/// Bytes of one element.
[[nodiscard]] std::size_t size_of(DType type);

/// "f32", "f16", "bf16", "i32", "u8".
[[nodiscard]] std::string_view name_of(DType type);

/// The element type of a C++ type: `dtype_of<float>() == DType::f32`.
template <class T>
[[nodiscard]] constexpr DType dtype_of() = delete;
template <>
[[nodiscard]] constexpr DType dtype_of<float>() {
  return DType::f32;
}
template <>
[[nodiscard]] constexpr DType dtype_of<std::int32_t>() {
  return DType::i32;
}
template <>
[[nodiscard]] constexpr DType dtype_of<std::uint8_t>() {
  return DType::u8;
}

}  // namespace concord
