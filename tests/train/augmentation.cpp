// Images in memory that are cropped, mirrored and changed in colour on the device: the pixels of the host's path to the
// bit, from one upload.
#include "concord/train/augmentation.hpp"

#include "concord/compile/program.hpp"
#include "concord/core/philox.hpp"
#include "concord/data/augmentation.hpp"
#include "concord/data/image/image_changes.hpp"
#include "concord/data/images.hpp"
#include "concord/data/selection.hpp"
#include "files.hpp"
#include "train/small_training.hpp"

using namespace concord;
using namespace concord::test;

namespace {

/// Images u8 [n, channels, height, width] of every level, in three classes.
Dataset level_images(std::int64_t n, std::int64_t channels, std::int64_t height, std::int64_t width) {
  Tensor pixels(DType::u8, {n, channels, height, width}), labels(DType::i32, {n});
  PhiloxSequence random(Philox(7, philox_purpose("test"), 0));
  for (std::uint8_t& level : pixels.values<std::uint8_t>()) level = static_cast<std::uint8_t>(random.next());
  for (std::int64_t i = 0; i < n; ++i)
    labels.values<std::int32_t>()[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(i % 3);
  return data::from_arrays(pixels, labels, 3);
}

data::ImageTransform transform_of(const Dataset& images, const std::string& augment, std::vector<float> mean = {}) {
  data::ImageTransform transform;
  const Shape& shape = images.features.shape();
  transform.channels = shape[1], transform.height = shape[2], transform.width = shape[3];
  transform.resize = std::min(shape[2], shape[3]);
  transform.mean = std::move(mean);
  transform.deviation.assign(transform.mean.size(), 0.25F);
  transform.augmentation = data::parse_augment(augment);
  return transform;
}

/// The same samples, of which the trainer does not know that they are in memory.
class ReadByHost final : public Samples {
 public:
  explicit ReadByHost(SharedSamples all) : all_(std::move(all)) { name = all_->name; }
  std::int64_t size() const override { return all_->size(); }
  std::vector<ColumnSpec> feature_specs() const override { return all_->feature_specs(); }
  std::vector<ColumnSpec> label_specs() const override { return all_->label_specs(); }
  void read(std::int64_t row, std::span<const std::span<std::byte>> columns,
            const SampleRandom& random) const override {
    all_->read(row, columns, random);
  }

 private:
  SharedSamples all_;
};

/// What the device makes of all images in the order of their rows.
Tensor changed_on(const DevicePtr& device, const Dataset& images, const data::ImageTransform& transform,
                  std::uint64_t seed, std::uint32_t epoch, Precision precision = Precision::fp32) {
  const std::int64_t n = images.size();
  const auto numbers = static_cast<std::int64_t>(data::change_numbers(transform));
  std::vector<float> drawn;
  for (std::int32_t row = 0; row < n; ++row) {
    std::vector<float> of_row(static_cast<std::size_t>(numbers));
    data::draw_changes(transform, {seed, epoch, row}, of_row);
    drawn.insert(drawn.end(), of_row.begin(), of_row.end());
  }
  Graph graph;
  const Value in = graph.input("images", images.features.spec());
  const Value by = graph.input("numbers", {DType::f32, Shape{n, numbers}});
  const Value out = train::changed(in, by, transform);
  Program program = compile(graph, {out}, std::make_shared<Variables>(device, 1), {.precision = precision});
  program.write("images", images.features);
  program.write("numbers", Tensor::of<float>(Shape{n, numbers}, drawn));
  program.run();
  return program.read(out);
}

Tensor changed_by_host(const Dataset& images, const data::ImageTransform& transform, std::uint64_t seed,
                       std::uint32_t epoch) {
  const SharedSamples samples = data::image_set(images).with(transform);
  std::vector<std::int32_t> rows(static_cast<std::size_t>(images.size()));
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<std::int32_t>(i);
  return data::read_rows(*samples, rows, seed, epoch).features;
}

std::size_t differences(const Tensor& a, const Tensor& b) {
  REQUIRE(a.spec() == b.spec());
  std::size_t count = 0;
  for (std::size_t i = 0; i < a.bytes().size(); ++i) count += a.bytes()[i] == b.bytes()[i] ? 0 : 1;
  return count;
}

Trainer image_trainer(const DevicePtr& device, std::int64_t channels) {
  nn::Sequential net{nn::Conv2d{channels, 4, 3, {.padding = 1}}, nn::ReLU{}, nn::GlobalAvgPool2d{}, nn::Flatten{},
                     nn::Linear{4, 3}};
  return Trainer{std::move(net), loss::cross_entropy, optim::Adam{.lr = 0.01}, device, {.seed = 4}};
}

}  // namespace

TEST_CASE("a device changes images to the bits of the host", "[train][augmentation]") {
  const std::vector<float> mean{0.5F, 0.4F, 0.3F};
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    for (const char* const augment :
         {"crop=3", "flip", "vflip", "crop=2,flip=0.7,vflip=0.4", "crop=40,flip", "jitter=0.4", "jitter=0:0.9",
          "jitter=0:0:1", "jitter=0.4:0.4:0.4", "crop=3,flip,jitter=3:1:2", "jitter=100:100:100"}) {
      CAPTURE(augment);
      for (const std::int64_t channels : {3, 1}) {
        CAPTURE(channels);
        const Dataset images = level_images(9, channels, 13, 17);
        for (const bool has_mean : {false, true}) {
          std::vector<float> fill;
          if (has_mean) fill.assign(mean.begin(), mean.begin() + channels);
          const data::ImageTransform transform = transform_of(images, augment, fill);
          const Tensor expected = changed_by_host(images, transform, 5, 2);
          for (const Precision precision : {Precision::fp32, Precision::bf16}) {
            CHECK(differences(changed_on(device, images, transform, 5, 2, precision), expected) == 0);
          }
          const bool is_grey = channels == 1 && augment == std::string("jitter=0:0:1");  // without saturation
          CHECK((differences(images.features, expected) > 0) != is_grey);
        }
      }
    }
  }
}

TEST_CASE("which images a device may change", "[train][augmentation]") {
  const Dataset images = level_images(4, 3, 8, 12);
  const auto is_on_device = [&](const std::string& augment, std::int64_t resize = 8, std::int64_t width = 12) {
    data::ImageTransform transform = transform_of(images, augment);
    transform.resize = resize, transform.width = width;
    const SharedSamples samples = data::image_set(images).with(transform);
    return data::changed_images_of(data::Selection(samples, {2, 0})).has_value();
  };
  CHECK(is_on_device("none"));
  CHECK(is_on_device("crop=2,flip,vflip,jitter=0.4:0.4:0.4"));
  for (const char* const other : {"rrc", "rotate=5", "randaugment", "cutout=0.5", "erase", "jitter=0:0:0:0.1"}) {
    CHECK_FALSE(is_on_device(other));
  }
  CHECK_FALSE(is_on_device("flip", 9));
  CHECK_FALSE(is_on_device("flip", 8, 10));
  CHECK_FALSE(data::changed_images_of(images).has_value());
}

TEST_CASE("a training augments on the device with one upload and the host's bits", "[train][augmentation]") {
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    const Dataset images = level_images(50, 3, 9, 11);
    const SharedSamples samples =
        data::image_set(images).with(transform_of(images, "crop=2,flip,jitter=0.4:0.4:0.4", {0.5F, 0.4F, 0.3F}));
    Trainer on_device = image_trainer(device, 3), by_host = image_trainer(device, 3);
    const History a = on_device.fit(*samples, {.epochs = 3, .batch = 8});
    const History b = by_host.fit(ReadByHost(samples), {.epochs = 3, .batch = 8});
    CHECK(bytes_of(on_device) == bytes_of(by_host));
    CHECK(a.epochs.back().loss == b.epochs.back().loss);
    CHECK(images.device_copies->uploaded_bytes == images.bytes());
    // A part of the images, and one that validates on the images as they are, share the upload.
    const data::Selection part(samples, {4, 9, 2, 33, 20, 7, 7, 40, 41, 42});
    on_device.fit(part, {.epochs = 2, .batch = 4, .validate = images, .last_batch = LastBatch::pad});
    by_host.fit(ReadByHost(part), {.epochs = 2, .batch = 4, .last_batch = LastBatch::pad});
    CHECK(bytes_of(on_device) == bytes_of(by_host));
    CHECK(images.device_copies->uploaded_bytes == images.bytes());
  }
}

TEST_CASE("a training that augments on the device goes on in the middle of an epoch", "[train][augmentation]") {
  const TemporaryFolder folder;
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    const Dataset images = level_images(50, 1, 8, 8);
    const SharedSamples samples = data::image_set(images).with(transform_of(images, "crop=2,flip,jitter=0.4:0.4"));
    Trainer whole = image_trainer(device, 1), first = image_trainer(device, 1), second = image_trainer(device, 1);
    whole.fit(*samples, {.epochs = 2, .batch = 8});
    first.fit(*samples, {.epochs = 2, .batch = 8, .max_steps = 9});
    first.save_checkpoint(folder / "c.safetensors");
    second.resume(folder / "c.safetensors");
    second.fit(*samples, {.epochs = 2, .batch = 8});
    CHECK(bytes_of(whole) == bytes_of(second));
    CHECK(images.device_copies->uploaded_bytes == images.bytes());
  }
}

TEST_CASE("random_crop and flips of a data set run on the device with the host's bits", "[train][augmentation]") {
  const data::Augmentation flip = data::random_horizontal_flip(3), crop = data::random_crop(4, 2);
  const data::Augmentation on_host = [=](std::span<std::byte> pixels, const data::SampleInfo& sample) {
    flip(pixels, sample);
    crop(pixels, sample);
    flip(pixels, sample);
  };
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    const Dataset images = level_images(30, 2, 9, 11);
    const data::Selection part(images, {1, 5, 29, 4, 8, 3, 3, 12, 20, 21, 22});
    Trainer on_device = image_trainer(device, 2), by_host = image_trainer(device, 2);
    for (const SharedSamples& samples : {SharedSamples(images), SharedSamples(part)}) {
      on_device.fit(*samples, {.epochs = 2, .batch = 4, .augmentation = data::in_order({flip, crop, flip})});
      CHECK(images.device_copies->uploaded_bytes == images.bytes());
      by_host.fit(ReadByHost(samples), {.epochs = 2, .batch = 4, .augmentation = on_host});
      CHECK(bytes_of(on_device) == bytes_of(by_host));
    }
    // Erasing, and two crops, are the host's.
    for (const data::Augmentation& other : {data::random_erasing(1), data::in_order({crop, crop})}) {
      Trainer trainer = image_trainer(device, 2);
      const Dataset others = level_images(8, 2, 9, 11);
      trainer.fit(others, {.epochs = 1, .batch = 4, .augmentation = other});
      CHECK(others.device_copies->uploaded_bytes == 0);
    }
  }
}

TEST_CASE("a wrong label of augmented images in memory is found before the training", "[train][augmentation]") {
  Dataset images = level_images(12, 1, 8, 8);
  const SharedSamples samples = data::image_set(images).with(transform_of(images, "flip"));
  images.labels.values<std::int32_t>()[5] = 9;
  Trainer trainer = image_trainer(devices()[0], 1);
  CHECK_THROWS_AS(trainer.fit(*samples, {.epochs = 1, .batch = 4}), ArgumentError);
}
