// safetensors: named tensors in one file, readable by the Python package `safetensors`. The format: the header length
// as 8 bytes little-endian, a JSON header {name: {dtype, shape, data_offsets}}, then the data without gaps. Checkpoints
// and weights files use it.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "concord/core/error.hpp"
#include "concord/core/export.hpp"
#include "concord/core/tensor.hpp"

namespace CONCORD_PUBLIC concord {
namespace io {

using TensorMap = std::map<std::string, Tensor>;

struct Safetensors {
  TensorMap tensors;
  std::map<std::string, std::string> metadata;  // "__metadata__"
};

/// The type and shape of a tensor in a file.
struct TensorEntry {
  std::string dtype;  // as the format names it: "BF16"
  Shape shape;
};

/// A file whose header has been read and checked. Throws IoError if it cannot be opened, and FormatError with the file,
/// the byte offset and the tensor if it is damaged. If it is another format, such as PyTorch, HDF5 or ONNX, the message
/// of the FormatError names that format.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::filesystem::path& path);
  SafetensorsFile(const SafetensorsFile&) = delete;
  SafetensorsFile& operator=(const SafetensorsFile&) = delete;
  ~SafetensorsFile();

  [[nodiscard]] const std::map<std::string, TensorEntry>& tensors() const;
  [[nodiscard]] const std::map<std::string, std::string>& metadata() const;
  /// Reads a tensor in the type that holds its numbers: F32, F16, BF16, I32 and U8 as they are, F64 and F8 as f32, BOOL
  /// as u8, other integers as i32. Throws FormatError for a number outside the range of that type.
  [[nodiscard]] Tensor read(const std::string& name);
  /// Reads a tensor and converts it: floating point to f32 with rounding to nearest even, integers to i32, and as the
  /// one exception PyTorch's "num_batches_tracked" to f32. Throws FormatError for another pair of types, and, with the
  /// tensor and the element, for a number outside the range of `type`.
  [[nodiscard]] Tensor read_as(const std::string& name, DType type);
  [[nodiscard]] bool is_readable_as(const std::string& name, DType type) const;

 private:
  class Reader;
  std::unique_ptr<Reader> reader_;
};

/// Reads a complete file, or with `wanted` only the tensors whose names it accepts. Every header field is checked
/// before memory is allocated for it. Throws IoError if the file cannot be opened. Throws FormatError with the file,
/// the byte offset and the tensor if the file is damaged. Types are those of SafetensorsFile::read.
[[nodiscard]] Safetensors read_safetensors(const std::filesystem::path& path,
                                           const std::function<bool(std::string_view)>& wanted = {});

/// Replaces the file at `path` atomically. Equal content gives equal bytes. Throws IoError, and ArgumentError for a
/// name that is not UTF-8, is empty or is "__metadata__".
void write_safetensors(const std::filesystem::path& path, const TensorMap& tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace io
}  // namespace concord
