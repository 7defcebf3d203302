// The programs of docs/guide/image-data.md.
#include "guide_test.hpp"

namespace concord {
namespace {

/// A grey picture with a bright upper (0) or lower (1) half.
Tensor half_bright(int half, std::int64_t channels) {
  Tensor picture(DType::u8, Shape{channels, 20, 24});
  const auto pixels = picture.values<std::uint8_t>();
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    const bool is_lower = i % (20 * 24) >= 10 * 24;
    pixels[i] = is_lower == (half == 1) ? 220 : 20;
  }
  return picture;
}

TEST_CASE("guide: folders of images", "[docs]") {
  const test::InEmptyFolder folder;
  for (const int half : {0, 1}) {
    const std::string name = half == 0 ? "photos/upper/" : "photos/lower/";
    std::filesystem::create_directories(name);
    for (int i = 0; i < 40; ++i) io::write_png(name + std::to_string(i) + ".png", half_bright(half, 3));
  }
  io::write_png("photo.png", half_bright(0, 3));
  const DevicePtr device = test::guide_device();
  // [folder]
  const data::ImageSet photos = data::folder("photos");
  data::ImageTransform transform{.height = 16, .width = 16, .resize = 18};
  transform.mean = {0.485F, 0.456F, 0.406F};
  transform.deviation = {0.229F, 0.224F, 0.225F};
  const SharedSamples plain = photos.with(transform);
  transform.augmentation = data::parse_augment("crop=2,flip,jitter=0.2");
  const SharedSamples augmented = photos.with(transform);

  // The same rows of two views: those to validate on are not augmented.
  const SharedSamples train = data::split(augmented, 10).first, validate = data::split(plain, 10).second;
  nn::Sequential net{nn::Conv2d{3, 8, 3, {.stride = 2}}, nn::ReLU{}, nn::Flatten{}, nn::Linear{8 * 7 * 7, 2}};
  Trainer trainer{net, loss::cross_entropy, optim::Adam{.lr = 1e-2}, device};
  trainer.fit(*train, {.epochs = 3, .batch = 10, .validate = validate});
  // [end]
  CHECK(trainer.evaluate(*validate).accuracy.value() > 0.8);
  // [files]
  transform.augmentation = {};
  const SharedSamples files = data::image_files({"photo.png"}).with(transform);
  const Tensor logits = trainer.predict(*files);  // (1, 2), in the order of photos.class_names()
  // [end]
  CHECK(photos.class_names() == std::vector<std::string>{"lower", "upper"});
  CHECK(logits.values<float>()[1] > logits.values<float>()[0]);
}

TEST_CASE("guide: masks beside images", "[docs]") {
  const test::InEmptyFolder folder;
  std::filesystem::create_directories("streets");
  std::filesystem::create_directories("masks");
  for (int i = 0; i < 10; ++i) {
    io::write_png("streets/" + std::to_string(i) + ".png", half_bright(i % 2, 3));
    Tensor mask = half_bright(i % 2, 1);
    for (std::uint8_t& number : mask.values<std::uint8_t>()) number = number > 100 ? 1 : 0;
    io::write_png("masks/" + std::to_string(i) + ".png", mask);
  }
  const DevicePtr device = test::guide_device();
  // [masks]
  const data::ImageSet streets = data::folder("streets", {.masks = "masks"});
  const SharedSamples samples = streets.with({.height = 16, .width = 16, .resize = 16});
  nn::Sequential net{nn::Conv2d{3, 8, 3, {.padding = 1}}, nn::ReLU{}, nn::Conv2d{8, 2, 1}};
  Trainer trainer{net, loss::CrossEntropy{.ignore_index = 255}, optim::Adam{.lr = 1e-2}, device};
  trainer.fit(*samples, {.epochs = 5, .batch = 5});
  // [end]
  CHECK(trainer.evaluate(*samples).loss < 0.5);
}

}  // namespace
}  // namespace concord
