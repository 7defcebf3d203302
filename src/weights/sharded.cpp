// Weights in several files with an index, as Hugging Face writes large ones: {"weight_map": {"TENSOR": "FILE", …}}. The
// files lie beside the index.
#include <algorithm>
#include <map>
#include <utility>

#include "concord/core/check.hpp"
#include "concord/core/json.hpp"
#include "concord/core/platform.hpp"
#include "concord/core/utf8.hpp"
#include "concord/weights/reader.hpp"

namespace concord::weights {
namespace {

class ShardedReader : public Reader {
 public:
  ShardedReader(const std::filesystem::path& path, OpenReader open) : where_(path.string()) {
    std::map<std::string, std::string> shards;  // by tensor
    read_json(read_file(path), where_ + ", byte 0", [&](const nlohmann::json& json) {
      json.at("weight_map").get_to(shards);
      return true;
    });
    for (const auto& [tensor, file] : shards) add(tensor, file, path.parent_path(), open);
    CONCORD_CHECK(!tensors.empty(), FormatError, "{}, byte 0: the index names no tensor", where_);
    format = fmt::format("{}, {} files", files_.begin()->second->format, files_.size());
  }

  Tensor read_as(const std::string& name, DType type) override { return places_.at(name)->read_as(name, type); }

 private:
  void add(const std::string& tensor, const std::string& file, const std::filesystem::path& folder, OpenReader open) {
    const bool is_beside =
        !file.empty() && file.find_first_of("/\\") == std::string::npos && file != "." && file != "..";
    CONCORD_CHECK(is_beside, FormatError, "{}, byte 0: '{}' is not the name of a file beside the index", where_,
                  printable(file));
    std::unique_ptr<Reader>& reader = files_[file];
    if (!reader) reader = open(folder / file);
    const auto found = reader->tensors.find(tensor);
    CONCORD_CHECK(found != reader->tensors.end(), FormatError, "{}, byte 0: {} has no tensor {}", where_,
                  printable(file), printable(tensor));
    tensors.insert(*found);
    places_.emplace(tensor, reader.get());
  }

  const std::string where_;
  std::map<std::string, std::unique_ptr<Reader>> files_;
  std::map<std::string, Reader*> places_;
};

}  // namespace

std::unique_ptr<Reader> open_sharded(const std::filesystem::path& path, OpenReader open) {
  return std::make_unique<ShardedReader>(path, open);
}

}  // namespace concord::weights
