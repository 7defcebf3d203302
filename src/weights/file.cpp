// Finding the format by the first bytes; an index of several files by its name.
#include "concord/weights/file.hpp"

#include <fstream>
#include <string_view>
#include <utility>

#include "concord/core/check.hpp"
#include "concord/core/platform.hpp"
#include "concord/core/text.hpp"
#include "concord/core/utf8.hpp"
#include "concord/weights/reader.hpp"

namespace concord::weights {
namespace {

using namespace std::string_view_literals;

std::string first_bytes(const std::filesystem::path& path) {
  std::error_code error;
  CONCORD_CHECK(std::filesystem::exists(path, error), IoError, "cannot open {}: no such file",
                printable(path.string()));
  CONCORD_CHECK(std::filesystem::is_regular_file(path, error), IoError, "cannot read {}: not a regular file",
                printable(path.string()));
  std::ifstream file(path, std::ios::binary);
  if (!file.is_open()) fail_to_open(path);
  std::string begin(16, '\0');
  file.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  begin.resize(static_cast<std::size_t>(file.gcount()));
  return begin;
}

std::unique_ptr<Reader> open_one(const std::filesystem::path& path) {
  const std::string begin = first_bytes(path);
  if (begin.starts_with("PK\x03\x04"sv)) return open_zip(path);
  // The length of a safetensors header may begin like a pickle; its ninth byte is a brace.
  const bool is_header = begin.size() > 8 && begin[8] == '{';
  if (!is_header && begin.size() > 1 && begin[0] == '\x80' && begin[1] >= 1 && begin[1] <= 5) {
    return open_legacy_torch(path);
  }
  if (begin.starts_with("\x89HDF\r\n\x1a\n"sv)) return open_hdf5(path);
  if (is_caffe(begin)) return open_caffe(path);
  return open_safetensors(path);
}

std::unique_ptr<Reader> open_file(const std::filesystem::path& path) {
  if (path.string().ends_with(".index.json")) return open_sharded(path, open_one);
  return open_one(path);
}

}  // namespace

struct File::Opened {
  std::unique_ptr<Reader> reader;
};

File::File(const std::filesystem::path& path) : opened_(std::make_unique<Opened>(Opened{open_file(path)})) {}
File::File(File&&) noexcept = default;
File::~File() = default;

const std::string& File::format() const { return opened_->reader->format; }
const std::map<std::string, io::TensorEntry>& File::tensors() const { return opened_->reader->tensors; }
const std::map<std::string, std::string>& File::metadata() const { return opened_->reader->metadata; }
const std::vector<std::string>& File::notes() const { return opened_->reader->notes; }

Tensor File::read(const std::string& name) {
  const auto found = tensors().find(name);
  CONCORD_CHECK(found != tensors().end(), ArgumentError, "the file has no tensor '{}'", name);
  return opened_->reader->read_as(name, io::natural_type(*io::find_element(found->second.dtype)));
}

Tensor File::read_as(const std::string& name, DType type) {
  CONCORD_CHECK(tensors().contains(name), ArgumentError, "the file has no tensor '{}'", name);
  return opened_->reader->read_as(name, type);
}

Contents read(const std::filesystem::path& path) {
  File file(path);
  Contents contents{file.format(), {}, file.metadata(), file.notes(), {}};
  for (const auto& [name, entry] : file.tensors()) {
    const io::Element& element = *io::find_element(entry.dtype);
    if (!element.type) {
      contents.cast.push_back(fmt::format("{}: {} → {}", name, entry.dtype, name_of(io::natural_type(element))));
    }
    contents.tensors.emplace(name, file.read(name));
  }
  return contents;
}

}  // namespace concord::weights
