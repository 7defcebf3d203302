// Images that lie in memory, as stored images: so that they can be augmented as those in files.
#include <cstring>
#include <utility>

#include "concord/core/check.hpp"
#include "concord/data/records/open.hpp"

namespace concord::data {
namespace {

class ArrayRecords final : public Records {
 public:
  explicit ArrayRecords(const Dataset& dataset) : dataset_(dataset) {
    const Tensor& images = dataset_.features;
    const Shape& shape = images.shape();
    CONCORD_CHECK(images.dtype() == DType::u8 && shape.rank() == 4 && (shape[1] == 1 || shape[1] == 3) &&
                      dataset.more_features.empty(),
                  ArgumentError, "{}: only images u8 [N, 1 or 3, rows, columns] can be augmented; the features are {}",
                  dataset.name, images.spec().str());
    raw_ = {shape[1], shape[2], shape[3]};
    name = dataset.name;
    labels = dataset.label_columns();
    class_names = dataset.class_names;
  }
  [[nodiscard]] std::int64_t size() const override { return dataset_.size(); }
  [[nodiscard]] const Dataset* dataset() const override { return &dataset_; }
  [[nodiscard]] std::string name_of(std::int64_t row) const override { return fmt::format("{}: sample {}", name, row); }
  [[nodiscard]] Record read(std::int64_t row, std::vector<std::byte>& /*scratch*/) const override {
    const std::span<const std::byte> images = dataset_.features.bytes();
    const std::size_t bytes = images.size() / static_cast<std::size_t>(size());
    return {images.subspan(static_cast<std::size_t>(row) * bytes, bytes), raw_};
  }

 private:
  Dataset dataset_;  // its arrays, and its copies on devices, are shared
  RawImage raw_;
};

}  // namespace

RecordsPtr open_arrays(const Dataset& dataset) { return std::make_shared<ArrayRecords>(dataset); }

}  // namespace concord::data
