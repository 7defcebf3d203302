// The cache of decoded images: the same samples, from fewer decodings, within its budget.
#include "concord/data/records/cache.hpp"

#include "concord/data/image/image_samples.hpp"
#include "concord/data/images.hpp"
#include "data/records/records_test.hpp"

using namespace concord;
using namespace concord::test;

namespace {

/// Counts how often an image is read.
class CountedRecords final : public data::Records {
 public:
  CountedRecords() {
    name = "counted";
    labels.push_back({"", Tensor(DType::i32, {3}), 2});
    for (int i = 0; i < 3; ++i) {
      std::string pixels(20 * 30 * 3, '\0');
      for (std::size_t p = 0; p < pixels.size(); ++p) pixels[p] = static_cast<char>((p * 7 + p / 90 + i * 50) % 256);
      files_.push_back("P6\n30 20\n255\n" + pixels);
    }
  }
  std::int64_t size() const override { return 3; }
  std::string name_of(std::int64_t row) const override { return std::to_string(row); }
  data::Record read(std::int64_t row, std::vector<std::byte>& /*scratch*/) const override {
    ++read_;
    return {bytes_in(files_[static_cast<std::size_t>(row)])};
  }
  mutable int read_ = 0;

 private:
  std::vector<std::string> files_;
};

}  // namespace

TEST_CASE("a cache of decoded images changes no byte and keeps to its budget", "[data]") {
  const TemporaryFolder folder;
  data::ImageTransform transform;
  transform.height = transform.width = 16;
  transform.resize = 18;
  transform.augmentation = data::parse_augment("rrc,flip,jitter=0.2");
  const auto samples_of = [&](const data::RecordsPtr& records) {
    const auto samples = data::images(records, transform);
    std::vector<std::string> all;
    for (std::uint32_t epoch = 0; epoch < 4; ++epoch) {
      for (std::int32_t row = 0; row < 3; ++row) {
        std::vector<std::byte> image(3 * 16 * 16), label(4);
        const std::array<std::span<std::byte>, 2> columns{image, label};
        samples->read(row, columns, {1, epoch, row});
        all.push_back(text_of(image));
      }
    }
    return all;
  };
  const auto expected = samples_of(std::make_shared<CountedRecords>());
  const std::uint64_t one = 20 * 30 * 3;
  for (const auto& directory : {std::filesystem::path(), folder / "."}) {
    for (const auto& [bytes, reads] : {std::pair(3 * one, 3), std::pair(2 * one, 3 + 3), std::pair(one - 1, 12)}) {
      INFO(directory << ", " << bytes << " bytes");
      const auto counted = std::make_shared<CountedRecords>();
      CHECK(samples_of(data::cached(counted, {bytes, directory, 3})) == expected);
      CHECK(counted->read_ == reads);
    }
    CHECK(std::filesystem::is_empty(folder / "."));
  }
  CHECK_THROWS_AS(data::cached(std::make_shared<CountedRecords>(), {one, folder / "none", 3}), IoError);

  // Two caches of one budget: the second has what the first leaves.
  const data::CacheBudget shared(4 * one);
  const auto first = std::make_shared<CountedRecords>(), second = std::make_shared<CountedRecords>();
  for (const auto& records : {first, second}) {
    CHECK(samples_of(data::cached(records, {shared.bytes, {}, 3, shared.used})) == expected);
  }
  CHECK((first->read_ == 3 && second->read_ == 1 + 4 * 2));
}
