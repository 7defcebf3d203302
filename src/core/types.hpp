// Element types of tensors and the precision of a compile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "concord/core/export.hpp"

namespace CONCORD_PUBLIC concord {

enum class DType : std::uint8_t { f32, f16, bf16, i32, u8 };

/// Bytes of one element.
[[nodiscard]] std::size_t size_of(DType type);

/// "f32", "f16", "bf16", "i32", "u8".
[[nodiscard]] std::string_view name_of(DType type);

/// How exactly the factors of matrix multiplications, convolutions, recurrent steps and attention are represented. With
/// bf16 and fp16 a device may also store values between operators in that type. Sums, weights, gradients of weights,
/// losses and everything else are fp32 with every precision. A precision is a permission: a device without suitable
/// matrix cores computes in fp32.
enum class Precision : std::uint8_t {
  fp32,  // as exact as IEEE single precision
  tf32,  // 11 significant bits, range of fp32
  bf16,  // 8 significant bits, range of fp32
  fp16,  // 11 significant bits, values up to 65504: gradients need loss scaling
};

/// "fp32", "tf32", "bf16", "fp16".
[[nodiscard]] std::string_view name_of(Precision precision);
/// Finds a precision by its name. Throws ArgumentError with the list of names.
[[nodiscard]] Precision precision_of(std::string_view name);
/// The largest relative rounding error of a factor: 2^-24, 2^-11, 2^-8, 2^-11.
[[nodiscard]] double unit_of(Precision precision);

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
