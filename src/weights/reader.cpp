// What readers share, and safetensors as one of them.
#include "concord/weights/reader.hpp"

#include <algorithm>
#include <bit>

#include "concord/core/check.hpp"

namespace concord::weights {
namespace {

class SafetensorsReader : public Reader {
 public:
  explicit SafetensorsReader(const std::filesystem::path& path) : file_(path) {
    format = "safetensors";
    tensors = file_.tensors();
    metadata = file_.metadata();
  }
  Tensor read_as(const std::string& name, DType type) override { return file_.read_as(name, type); }

 private:
  io::SafetensorsFile file_;
};

}  // namespace

std::unique_ptr<Reader> open_safetensors(const std::filesystem::path& path) {
  return std::make_unique<SafetensorsReader>(path);
}

Tensor converted(const io::Element& element, std::span<const std::byte> numbers, const Shape& shape, DType type,
                 const std::string& where) {
  CONCORD_CHECK(io::is_convertible(element, type, where), FormatError, "{}: type {} cannot be converted to {}", where,
                element.name, name_of(type));
  Tensor tensor(type, shape);
  if (const auto misfit = io::convert(element, numbers, tensor)) {
    throw FormatError(fmt::format("{}: element {} is {}, outside the range of {}", where, misfit->index, misfit->number,
                                  name_of(type)));
  }
  return tensor;
}

Shape shape_of(const std::vector<std::int64_t>& dims, const std::string& where) {
  try {
    return Shape(dims);
  } catch (const ShapeError& error) {
    throw FormatError(fmt::format("{}: {}", where, error.what()));
  }
}

void to_host_order(std::span<std::byte> bytes, std::size_t element) {
  if constexpr (std::endian::native == std::endian::big) {
    for (std::size_t i = 0; i + element <= bytes.size(); i += element) std::ranges::reverse(bytes.subspan(i, element));
  }
}

}  // namespace concord::weights
