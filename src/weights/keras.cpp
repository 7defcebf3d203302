// Keras files: .h5 of Keras 2 and 3 (model_weights/LAYER/…/NAME:0, or the layers alone), .weights.h5 and .keras of
// Keras 3 (layers/CLASS_N/vars/N, whose names follow from the groups or from config.json).
#include <algorithm>
#include <utility>

#include "concord/core/check.hpp"
#include "concord/core/text.hpp"
#include "concord/core/utf8.hpp"
#include "concord/weights/hdf5.hpp"
#include "concord/weights/keras_config.hpp"
#include "concord/weights/reader.hpp"
#include "concord/weights/zip_formats.hpp"

namespace concord::weights {
namespace {

constexpr std::string_view kWeights = "model_weights/";
constexpr std::string_view kOptimizer = "optimizer_weights/";
constexpr std::string_view kLayersGroup = "layers/";
constexpr const char* kImage = "model.weights.h5";
constexpr const char* kConfig = "config.json";

/// "conv2d_1/conv2d_1_1/kernel:0" and "conv2d_1/model/conv2d_1/kernel" → "conv2d_1.kernel": the layer, and what stands
/// below its last repetition.
std::string keras_name(std::string_view path) {
  std::vector<std::string> parts = split(path, '/');
  if (parts.empty()) return std::string(path);
  std::string& last = parts.back();
  if (last.ends_with(":0")) last.resize(last.size() - 2);
  const auto repeats = [&](const std::string& part) {
    if (!part.starts_with(parts[0])) return false;
    const std::string_view rest = std::string_view(part).substr(parts[0].size());
    return rest.empty() || (rest.size() > 1 && rest[0] == '_' && std::ranges::all_of(rest.substr(1), is_digit));
  };
  for (std::size_t i = parts.size() - 1; i-- > 1;) {
    if (!repeats(parts[i])) continue;
    parts.erase(parts.begin() + 1, parts.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    break;
  }
  std::string name = parts[0];
  for (std::size_t i = 1; i < parts.size(); ++i) name += "." + parts[i];
  return name;
}

class KerasReader : public Reader {
 public:
  KerasReader(std::unique_ptr<Hdf5File> file, std::string where) : file_(std::move(file)), where_(std::move(where)) {}

  Tensor read_as(const std::string& name, DType type) override {
    const std::string& path = paths_.at(name);
    const io::TensorEntry& entry = tensors.at(name);
    return converted(*io::find_element(entry.dtype), file_->read(path), entry.shape, type,
                     fmt::format("{}, byte 0: {}", where_, printable(path)));
  }

 protected:
  void add(std::string name, const std::string& path) {
    const auto at = paths_.find(name);
    CONCORD_CHECK(at == paths_.end(), FormatError, "{}, byte 0: {} and {} have one name, {}", where_, printable(path),
                  printable(at->second), printable(name));
    tensors.emplace(name, file_->datasets().at(path));
    paths_.emplace(std::move(name), path);
  }

  /// The numbered variables of Keras 3, but for those of the optimizer.
  void add_variables(const KerasNames& names) {
    bool has_optimizer = false;
    for (const auto& [dataset, entry] : file_->datasets()) {
      if (dataset.starts_with("optimizer/")) {
        has_optimizer = true;
      } else {
        add(names.name_of(dataset), dataset);
      }
    }
    if (has_optimizer) notes.emplace_back("left out: optimizer");
  }

  const std::unique_ptr<Hdf5File> file_;
  const std::string where_;
  std::map<std::string, std::string> paths_;
};

class Hdf5KerasReader : public KerasReader {
 public:
  explicit Hdf5KerasReader(const std::filesystem::path& path)
      : KerasReader(std::make_unique<Hdf5File>(path), path.string()) {
    format = "Keras (HDF5)";
    const auto& datasets = file_->datasets();
    const bool is_numbered = std::ranges::any_of(datasets, [](const auto& one) {
      return one.first.starts_with(kLayersGroup) && one.first.find("/vars/") != std::string::npos;
    });
    if (is_numbered) {
      add_numbered();
    } else {
      add_named();
    }
    CONCORD_CHECK(!tensors.empty(), FormatError, "{}, byte 0: the HDF5 file has no tensors", where_);
  }

 private:
  void add_named() {
    const auto& datasets = file_->datasets();
    const bool is_model =
        std::ranges::any_of(datasets, [](const auto& one) { return one.first.starts_with(kWeights); });
    bool has_optimizer = false;
    for (const auto& [dataset, entry] : datasets) {
      has_optimizer = has_optimizer || dataset.starts_with(kOptimizer);
      if (is_model && !dataset.starts_with(kWeights)) continue;
      add(keras_name(std::string_view(dataset).substr(is_model ? kWeights.size() : 0)), dataset);
    }
    if (is_model && has_optimizer) notes.emplace_back("left out: optimizer_weights");
  }

  /// A .weights.h5.
  void add_numbered() {
    std::vector<std::string> paths;
    for (const auto& [dataset, entry] : file_->datasets()) paths.push_back(dataset);
    add_variables(KerasNames(paths, file_->group_names()));
  }
};

class ZipKerasReader : public KerasReader {
 public:
  explicit ZipKerasReader(std::unique_ptr<io::ZipArchive> archive)
      : KerasReader(std::make_unique<Hdf5File>(archive->read(kImage), archive->place_of(kImage)),
                    archive->place_of(kImage)) {
    format = "Keras 3";
    add_variables(KerasNames(archive->read_text(kConfig), archive->place_of(kConfig)));
    CONCORD_CHECK(!tensors.empty(), FormatError, "{}, byte 0: no layer has weights", where_);
  }
};

}  // namespace

std::unique_ptr<Reader> open_hdf5(const std::filesystem::path& path) { return std::make_unique<Hdf5KerasReader>(path); }

std::unique_ptr<Reader> open_keras_zip(std::unique_ptr<io::ZipArchive>& archive) {
  if (!archive->entries().contains(kImage) || !archive->entries().contains(kConfig)) return nullptr;
  return std::make_unique<ZipKerasReader>(std::move(archive));
}

}  // namespace concord::weights
