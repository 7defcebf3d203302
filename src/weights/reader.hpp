// Reader: what each format of weights files gives: named tensors, whose numbers are read on demand. Internal to the
// room.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "concord/core/tensor.hpp"
#include "concord/io/element.hpp"
#include "concord/io/safetensors.hpp"

namespace concord::weights {

class Reader {
 public:
  Reader() = default;
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  virtual ~Reader() = default;

  /// Reads a tensor and converts it. Throws FormatError with the file, the byte and the tensor.
  [[nodiscard]] virtual Tensor read_as(const std::string& name, DType type) = 0;

  std::string format = {};                              // "PyTorch (zip)"
  std::map<std::string, io::TensorEntry> tensors = {};  // types as safetensors names them
  std::map<std::string, std::string> metadata = {};
  std::vector<std::string> notes = {};  // what was unwrapped and left out
};

// One for each format. They throw IoError, and FormatError for a damaged file.
[[nodiscard]] std::unique_ptr<Reader> open_safetensors(const std::filesystem::path& path);
[[nodiscard]] std::unique_ptr<Reader> open_zip(const std::filesystem::path& path);  // PyTorch, Keras 3
[[nodiscard]] std::unique_ptr<Reader> open_legacy_torch(const std::filesystem::path& path);
[[nodiscard]] std::unique_ptr<Reader> open_hdf5(const std::filesystem::path& path);  // Keras
[[nodiscard]] std::unique_ptr<Reader> open_caffe(const std::filesystem::path& path);
/// An index of several files, each of which `open` opens.
using OpenReader = std::unique_ptr<Reader> (*)(const std::filesystem::path& path);
[[nodiscard]] std::unique_ptr<Reader> open_sharded(const std::filesystem::path& path, OpenReader open);
/// Whether a file with these first bytes, 16 or all, may be a caffemodel, which has no mark of its own.
[[nodiscard]] bool is_caffe(std::string_view begin);

/// Numbers of `element` in the host's byte order as a tensor of `type`. `where`, which ends with the name of the
/// tensor, begins the message of the FormatError for numbers that the type does not hold.
[[nodiscard]] Tensor converted(const io::Element& element, std::span<const std::byte> numbers, const Shape& shape,
                               DType type, const std::string& where);

/// The shape of a tensor of a file. Throws FormatError with `where` for one that no tensor has.
[[nodiscard]] Shape shape_of(const std::vector<std::int64_t>& dims, const std::string& where);

/// The byte order of files is little-endian.
void to_host_order(std::span<std::byte> bytes, std::size_t element);

}  // namespace concord::weights
