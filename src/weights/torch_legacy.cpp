// PyTorch's files from before version 1.6: pickles of a magic number, a version, the machine, the object and the keys
// of the storages, then each storage: the number of its elements in 8 bytes, and the elements.
#include <algorithm>
#include <cstring>
#include <fstream>
#include <map>
#include <set>
#include <utility>

#include "concord/core/check.hpp"
#include "concord/core/platform.hpp"
#include "concord/core/utf8.hpp"
#include "concord/weights/reader.hpp"
#include "concord/weights/torch_state.hpp"

namespace concord::weights {
namespace {

constexpr std::string_view kMagic{"\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 10};
constexpr std::uint64_t kLongestPickles = std::uint64_t{64} << 20;

class LegacyTorchReader : public Reader {
 public:
  explicit LegacyTorchReader(const std::filesystem::path& path) : file_(path, std::ios::binary), where_(path.string()) {
    if (!file_.is_open()) fail_to_open(path);
    format = "PyTorch (before 1.6)";
    file_bytes_ = std::filesystem::file_size(path);
    text_.resize(std::min(file_bytes_, kLongestPickles));
    read_at(0, std::as_writable_bytes(std::span(text_)), "pickle");
    read_pickles();
  }

  Tensor read_as(const std::string& name, DType type) override {
    const PickledTensor& tensor = windows_.at(name);
    const std::size_t width = tensor.element->bytes;
    // Only the part of the storage that the tensor spans.
    PickledTensor part = tensor;
    std::uint64_t span = 1;
    for (std::size_t i = 0; i < tensor.dims.size(); ++i) {
      span += static_cast<std::uint64_t>(std::max<std::int64_t>(tensor.dims[i] - 1, 0) * tensor.strides[i]);
    }
    const std::uint64_t unit = tensor.storage.element == nullptr ? 1 : tensor.storage.element->bytes;
    const std::uint64_t begin = storages_.at(tensor.storage.key) + tensor.storage.first * unit + tensor.offset * width;
    part.storage.first = part.offset = 0;
    std::vector<std::byte> bytes(Shape(tensor.dims).elements() == 0 ? 0 : span * width);
    read_at(begin, bytes, name);
    std::vector<std::byte> numbers = gather(part, bytes);
    to_host_order(numbers, width);
    return converted(*tensor.element, numbers, Shape(tensor.dims), type,
                     fmt::format("{}, byte {}: {}", where_, begin, printable(name)));
  }

 private:
  [[noreturn]] void fail(std::uint64_t byte, std::string_view what) const {
    throw FormatError(fmt::format("{}, byte {}: {}", where_, byte, what));
  }

  void read_at(std::uint64_t at, std::span<std::byte> bytes, std::string_view what) {
    file_.clear();
    file_.seekg(static_cast<std::streamoff>(at));
    file_.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    if (static_cast<std::size_t>(file_.gcount()) != bytes.size()) {
      fail(at, fmt::format("{}: the file ends too early", printable(what)));
    }
  }

  void read_pickles() {
    std::size_t at = 0;
    const auto next = [&] {
      Pickle pickle(std::string_view(text_).substr(at), where_, at);
      at += pickle.bytes();
      return pickle;
    };
    const Pickle magic = next();
    if (magic.value().text != kMagic) {
      fail(0, "a Python pickle that is no PyTorch file. In Python: torch.save(state_dict, FILE)");
    }
    const std::size_t version_at = at;
    const Pickle version = next();
    if (version.value().whole != 1001) fail(version_at, "a PyTorch file of an unknown version");
    const std::size_t machine_at = at;
    check_machine(next(), machine_at);
    const std::size_t object_at = at;
    const Pickle object = next();
    const std::size_t keys_at = at;
    const Pickle keys = next();
    find_storages(object, keys, keys_at, at);
    TorchState state = torch_state(object, fmt::format("{}, byte {}", where_, object_at));
    for (const auto& [name, tensor] : state.tensors) {
      tensors.emplace(name, io::TensorEntry{tensor.element->name,
                                            shape_of(tensor.dims, fmt::format("{}, byte {}", where_, tensor.byte))});
    }
    windows_ = std::move(state.tensors);
    notes = std::move(state.notes);
  }

  void check_machine(const Pickle& machine, std::size_t at) const {
    const std::vector<Pickled*>& items = machine.value().items;
    for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
      if (items[i]->text == "little_endian" && items[i + 1]->whole != 1) fail(at, "numbers are not little-endian");
    }
  }

  void find_storages(const Pickle& object, const Pickle& keys, std::size_t keys_at, std::uint64_t at) {
    std::map<std::string_view, PickledStorage> described;
    for (const PickledStorage& storage : object.storages()) {
      // A view names the elements of a part; the whole has them all.
      PickledStorage& whole = described.try_emplace(storage.key, storage).first->second;
      if (whole.element != storage.element)
        fail(keys_at, fmt::format("storage {} of two types", printable(storage.key)));
      whole.elements = std::max(whole.elements, storage.first + storage.elements);
    }
    if (keys.value().kind != Pickled::Kind::list) fail(keys_at, "the keys of the storages are no list");
    for (const Pickled* key : keys.value().items) {
      const auto found = key->kind == Pickled::Kind::text ? described.find(key->text) : described.end();
      if (found == described.end()) fail(keys_at, "the key of a storage that nothing names");
      const std::uint64_t unit = found->second.element == nullptr ? 1 : found->second.element->bytes;
      std::byte count[8]{};
      read_at(at, count, key->text);
      std::uint64_t elements = 0;
      for (std::size_t i = 8; i-- > 0;) elements = elements << 8 | std::to_integer<std::uint64_t>(count[i]);
      const std::uint64_t left = file_bytes_ - at - 8;
      if (elements > left / unit || elements < found->second.elements) {
        fail(at, fmt::format("storage {} has {} elements of {} bytes; {} are described, and the file has {} more bytes",
                             printable(key->text), elements, unit, found->second.elements, left));
      }
      if (!storages_.emplace(key->text, at + 8).second) {
        fail(keys_at, fmt::format("storage {} is there twice", printable(key->text)));
      }
      at += 8 + elements * unit;
    }
    for (const auto& [key, storage] : described) {
      if (!storages_.contains(key)) fail(keys_at, fmt::format("storage {} is missing", printable(key)));
    }
    if (at != file_bytes_) fail(at, fmt::format("{} bytes belong to no storage", file_bytes_ - at));
  }

  std::ifstream file_;
  const std::string where_;
  std::uint64_t file_bytes_ = 0;
  std::string text_;                                    // of the pickles
  std::map<std::string_view, std::uint64_t> storages_;  // where the elements begin
  std::map<std::string, PickledTensor> windows_;
};

}  // namespace

std::unique_ptr<Reader> open_legacy_torch(const std::filesystem::path& path) {
  return std::make_unique<LegacyTorchReader>(path);
}

}  // namespace concord::weights
