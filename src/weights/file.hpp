// Weights of other programs: named tensors from safetensors, PyTorch, Keras and Caffe files. The trainer, the command
// and concord::weights::load read them.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "concord/core/export.hpp"
#include "concord/core/tensor.hpp"
#include "concord/io/safetensors.hpp"

namespace CONCORD_PUBLIC concord {
namespace weights {

/// A file of weights whose list of tensors has been read and checked. The format is found by the content. Nothing in a
/// file is executed: a Python pickle that calls for anything but tensors and plain values is an error that names it.
///
/// Throws IoError if the file cannot be opened, NotSupported if this build cannot read the format, and FormatError with
/// the file, the byte and the tensor if the file is damaged or is another format.
class File {
 public:
  explicit File(const std::filesystem::path& path);
  File(File&&) noexcept;
  File& operator=(File&&) = delete;
  ~File();

  /// "PyTorch (zip)", for messages.
  [[nodiscard]] const std::string& format() const;
  [[nodiscard]] const std::map<std::string, io::TensorEntry>& tensors() const;
  [[nodiscard]] const std::map<std::string, std::string>& metadata() const;
  /// What was unwrapped and left out: "the tensors are those of \"state_dict\"", "left out: epoch, lr".
  [[nodiscard]] const std::vector<std::string>& notes() const;

  /// Reads a tensor in the type that holds its numbers: f32, f16, bf16, i32 and u8 as they are, F64 and F8 as f32,
  /// BOOL as u8, other integers as i32. Throws FormatError for a number outside the range of that type.
  [[nodiscard]] Tensor read(const std::string& name);
  /// Reads a tensor and converts it, as io::SafetensorsFile::read_as.
  [[nodiscard]] Tensor read_as(const std::string& name, DType type);

 private:
  struct Opened;
  std::unique_ptr<Opened> opened_;
};

/// A whole file.
struct Contents {
  std::string format;
  io::TensorMap tensors;
  std::map<std::string, std::string> metadata;
  std::vector<std::string> notes;
  std::vector<std::string> cast;  // "embeddings.position_ids: I64 → i32"
};
/// Reads all tensors of a file, as File and File::read.
[[nodiscard]] Contents read(const std::filesystem::path& path);

}  // namespace weights
}  // namespace concord
