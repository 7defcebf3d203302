// safetensors: named tensors in one file, readable by the Python package of that name. The format: 8 bytes
// little-endian header length, a JSON header {name: {dtype, shape, data_offsets}}, the data without gaps.
// Used by checkpoints and weights.
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

/// A tensor of a file, unread.
struct TensorEntry {
  std::string dtype;  // "BF16", as the format names it
  Shape shape;
};

/// A file whose header has been read and checked. Throws IoError when it cannot be opened, FormatError with file, byte
/// offset and tensor when it is damaged, and one that names the format where it is a PyTorch, HDF5, ONNX, … file.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::filesystem::path& path);
  SafetensorsFile(const SafetensorsFile&) = delete;
  SafetensorsFile& operator=(const SafetensorsFile&) = delete;
  ~SafetensorsFile();

  [[nodiscard]] const std::map<std::string, TensorEntry>& tensors() const;
  [[nodiscard]] const std::map<std::string, std::string>& metadata() const;
  /// Throws FormatError for a type other than F32, F16, BF16, I32 and U8.
  [[nodiscard]] Tensor read(const std::string& name);
  /// With its numbers as those of another type: F64, F16 and BF16 as f32, rounded to nearest even; whole numbers as
  /// i32. Throws FormatError naming tensor and element for a number that the type does not hold, and for another pair.
  [[nodiscard]] Tensor read_as(const std::string& name, DType type);
  [[nodiscard]] bool is_readable_as(const std::string& name, DType type) const;

 private:
  class Reader;
  std::unique_ptr<Reader> reader_;
};

/// Reads a file whole; with `wanted`, only the tensors whose names it accepts. Every header field is checked before
/// memory is allocated for it. Throws IoError when the file cannot be opened, FormatError with file, byte offset and
/// tensor when it is damaged, or when a wanted tensor has a type other than F32, F16, BF16, I32 and U8.
[[nodiscard]] Safetensors read_safetensors(const std::filesystem::path& path,
                                           const std::function<bool(std::string_view)>& wanted = {});

/// Replaces the file at `path` at once (see AtomicFile). Equal content gives equal bytes. Throws IoError, and
/// ArgumentError for a name that is not UTF-8, is empty or is "__metadata__".
void write_safetensors(const std::filesystem::path& path, const TensorMap& tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace io
}  // namespace concord
