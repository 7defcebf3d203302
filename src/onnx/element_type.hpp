// The element types that ONNX files name. Concord computes with fewer (DType): values of the others become those.
#pragma once

#include <cstdint>
#include <string>

#include "concord/core/export.hpp"
#include "concord/core/types.hpp"

namespace CONCORD_PUBLIC concord {
namespace onnx {

/// TensorProto.DataType; the numbers are those of the file.
enum class ElementType : std::int32_t {
  undefined = 0,
  f32 = 1,
  u8 = 2,
  i8 = 3,
  u16 = 4,
  i16 = 5,
  i32 = 6,
  i64 = 7,
  string = 8,
  boolean = 9,
  f16 = 10,
  f64 = 11,
  u32 = 12,
  u64 = 13,
  complex64 = 14,
  complex128 = 15,
  bf16 = 16,
  f8e4m3fn = 17,
  f8e4m3fnuz = 18,
  f8e5m2 = 19,
  f8e5m2fnuz = 20,
  u4 = 21,
  i4 = 22,
  f4e2m1 = 23,
};

/// ONNX's name, "float", "int64", "bool"; "type 77" for a number without a name.
[[nodiscard]] std::string name_of(ElementType type);
/// The type with which Concord computes: f32 for float, double and the 16-bit types, u8 for uint8 and bool, i32 for the
/// other integers. Throws NotSupported for strings, complex numbers and types of 8 bits or less that are not integers.
[[nodiscard]] DType dtype_of(ElementType type);

}  // namespace onnx
}  // namespace concord
