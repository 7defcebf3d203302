// PyTorch's files since version 1.6: a zip archive with a pickle, NAME/data.pkl, and the storages, NAME/data/KEY.
#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <utility>

#include "concord/core/check.hpp"
#include "concord/core/utf8.hpp"
#include "concord/io/zip.hpp"
#include "concord/weights/reader.hpp"
#include "concord/weights/torch_state.hpp"
#include "concord/weights/zip_formats.hpp"

namespace concord::weights {
namespace {

constexpr std::string_view kPickle = "/data.pkl";
constexpr std::uint64_t kLongestPickle = std::uint64_t{64} << 20;
constexpr std::uint64_t kLongestOrder = 16;  // "little"

class TorchZipReader : public Reader {
 public:
  TorchZipReader(std::unique_ptr<io::ZipArchive> archive, std::string pickle_name)
      : archive_(std::move(archive)),
        folder_(pickle_name.substr(0, pickle_name.size() - kPickle.size())),
        where_(archive_->place_of(pickle_name)) {
    format = "PyTorch (zip)";
    const bool is_script = std::ranges::any_of(archive_->entries(), [&](const auto& entry) {
      return entry.first == folder_ + "/constants.pkl" || entry.first.starts_with(folder_ + "/code/");
    });
    CONCORD_CHECK(
        !is_script, FormatError,
        "{}, byte 0: a TorchScript archive, which is a program; export the network with torch.onnx.export instead, or "
        "save its weights: torch.save(model.state_dict(), FILE)",
        where_);
    const std::string order = folder_ + "/byteorder";
    const auto found = archive_->entries().find(order);
    const bool is_little = found == archive_->entries().end() ||
                           (found->second.bytes <= kLongestOrder && archive_->read_text(order) == "little");
    CONCORD_CHECK(is_little, FormatError,
                  "{}, byte 0: numbers are not little-endian; in Python: torch.load and torch.save on another machine",
                  archive_->place_of(order));
    const std::uint64_t bytes = archive_->entries().find(pickle_name)->second.bytes;
    CONCORD_CHECK(bytes <= kLongestPickle, FormatError, "{}, byte 0: {} bytes; the limit is {}", where_, bytes,
                  kLongestPickle);
    text_ = archive_->read_text(pickle_name);
    const Pickle pickle(text_, where_);
    for (const PickledStorage& storage : pickle.storages()) {
      std::uint64_t& named = named_bytes_[storage.key];
      named = std::max(named, bytes_of(storage));
    }
    TorchState state = torch_state(pickle, where_ + ", byte 0");
    for (auto& [name, tensor] : state.tensors) {
      check_storage(name, tensor);
      tensors.emplace(name, io::TensorEntry{tensor.element->name,
                                            shape_of(tensor.dims, fmt::format("{}, byte {}", where_, tensor.byte))});
    }
    windows_ = std::move(state.tensors);
    notes = std::move(state.notes);
  }

  Tensor read_as(const std::string& name, DType type) override {
    const PickledTensor& tensor = windows_.at(name);
    const std::string entry = entry_of(tensor);
    if (held_name_ != entry) {
      held_ = archive_->read(entry);
      held_name_ = entry;
    }
    std::vector<std::byte> numbers = gather(tensor, held_);
    to_host_order(numbers, tensor.element->bytes);
    return converted(*tensor.element, numbers, Shape(tensor.dims), type,
                     fmt::format("{}, byte {}: {}", archive_->place_of(entry), tensor.offset * tensor.element->bytes,
                                 printable(name)));
  }

 private:
  [[nodiscard]] std::string entry_of(const PickledTensor& tensor) const {
    return fmt::format("{}/data/{}", folder_, tensor.storage.key);
  }

  static std::uint64_t unit_of(const PickledStorage& storage) {
    return storage.element == nullptr ? 1 : storage.element->bytes;
  }
  static std::uint64_t bytes_of(const PickledStorage& storage) {
    constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
    return storage.whole > kMost / unit_of(storage) ? kMost : storage.whole * unit_of(storage);
  }

  // The pickle says how large a storage is; the entry has to be as large, but for a rest that is no element.
  void check_storage(const std::string& name, const PickledTensor& tensor) const {
    const auto found = archive_->entries().find(entry_of(tensor));
    const std::string where = fmt::format("{}, byte {}: {}", where_, tensor.byte, printable(name));
    CONCORD_CHECK(found != archive_->entries().end(), FormatError, "{}: the archive has no entry {}", where,
                  printable(entry_of(tensor)));
    const std::uint64_t unit = unit_of(tensor.storage);
    const std::uint64_t there = found->second.bytes / unit, first = tensor.storage.first;
    CONCORD_CHECK(first <= there && tensor.storage.elements <= there - first, FormatError,
                  "{}: entry {} has {} bytes; its storage needs {} elements of {} bytes from element {} on", where,
                  printable(found->first), found->second.bytes, tensor.storage.elements, unit, first);
    const std::uint64_t named = named_bytes_.at(tensor.storage.key);
    CONCORD_CHECK(found->second.bytes <= named || found->second.bytes - named < unit, FormatError,
                  "{}: entry {} has {} bytes; its storage has {}", where, printable(found->first), found->second.bytes,
                  named);
  }

  const std::unique_ptr<io::ZipArchive> archive_;
  const std::string folder_, where_;
  std::string text_;                                       // of the pickle
  std::map<std::string_view, std::uint64_t> named_bytes_;  // of the storage of each key
  std::map<std::string, PickledTensor> windows_;
  std::string held_name_;  // several tensors may share a storage
  std::vector<std::byte> held_;
};

}  // namespace

std::unique_ptr<Reader> open_torch_zip(std::unique_ptr<io::ZipArchive>& archive) {
  std::string pickle_name;
  for (const auto& [name, entry] : archive->entries()) {
    if (name.ends_with(kPickle) && std::ranges::count(name, '/') == 1) pickle_name = name;
  }
  if (pickle_name.empty()) return nullptr;
  return std::make_unique<TorchZipReader>(std::move(archive), std::move(pickle_name));
}

}  // namespace concord::weights
