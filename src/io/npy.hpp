// Arrays of numpy's .npy files (numpy.lib.format, versions 1 to 3): one tensor in a file. The command reads inputs from
// them and writes outputs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "concord/core/export.hpp"
#include "concord/core/tensor.hpp"

namespace CONCORD_PUBLIC concord {
namespace io {

/// Reads an array in C or Fortran order and either byte order, row-major in the result. float16, 32 and 64 become f32,
/// rounded to nearest even; int8, 16, 32 and 64 and uint16, 32 and 64 become i32; uint8 and bool become u8. Throws
/// IoError if the file cannot be opened; FormatError with the byte for a damaged file, another element type, or a
/// number outside the range of the result's type.
[[nodiscard]] Tensor read_npy(const std::filesystem::path& path);
/// The same, of the bytes of such a file. Messages begin with `subject`.
[[nodiscard]] Tensor parse_npy(std::string_view content, std::string_view subject);

struct NpyArray {
  Tensor tensor;
  bool is_boolean = false;  // u8 that is 0 or 1
};
/// As parse_npy, and whether the file says bool.
[[nodiscard]] NpyArray parse_npy_array(std::string_view content, std::string_view subject);

/// The element type of a written array.
enum class NpyType : std::uint8_t {
  same,     // that of the tensor: float32, int32, uint8
  int64,    // from i32
  boolean,  // from u8: 0 is false
};
/// Writes an array in version 1, replacing the file completely or not at all. Tensors f16 and bf16 are written as
/// float32. Throws IoError, and ArgumentError for a tensor that does not have the type that `as` needs.
void write_npy(const std::filesystem::path& path, const Tensor& tensor, NpyType as = NpyType::same);

}  // namespace io
}  // namespace concord
