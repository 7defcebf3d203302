// Masks through the command: check, pack, train, evaluate and predict, from a folder and from shards.
#include <fmt/format.h>

#include "cli/packing.hpp"
#include "cli/pictures.hpp"
#include "concord/io/safetensors.hpp"

using namespace concord;
using namespace concord::test;

namespace {

constexpr std::int64_t kSide = 32;

/// A mask of grey levels with the numbers 0 to 2 in stripes, and some pixels without a class.
data::Image mask_of(int seed) {
  data::Image mask;
  mask.resize(kSide, kSide, 1);
  for (std::int64_t i = 0; i < kSide * kSide; ++i) {
    const std::int64_t column = i % kSide;
    mask.pixels[static_cast<std::size_t>(i)] = column == 0 ? 255 : static_cast<std::uint8_t>((column / 8 + seed) % 3);
  }
  return mask;
}

/// Six images in `images` and their masks in `labels`. Returns the spec without classes=.
std::string write_streets(const TemporaryFolder& folder) {
  for (int i = 0; i < 6; ++i) {
    write_picture(folder, fmt::format("images/{}.png", i), kSide, kSide, 1, i);
    std::filesystem::create_directories(folder / "labels");
    write_file(folder / fmt::format("labels/{}.png", i), data::encode_png(mask_of(i)));
  }
  return fmt::format("folder:{},masks={}", (folder / "images").string(), (folder / "labels").string());
}

/// Whether pixel `pixel` of the grey picture `i`, in a sheet of three columns, is half of the colour of its class.
bool is_painted(const data::Image& sheet, std::size_t i, std::size_t pixel, const data::Image& picture,
                std::size_t label) {
  constexpr std::size_t kFactor = 4, kMargin = 8, kCellWidth = 144, kCellHeight = 176, kSides = kSide;
  constexpr std::array<std::array<int, 3>, 3> kColours{{{}, {128, 0, 0}, {0, 128, 0}}};
  const std::size_t y = i / 3 * kCellHeight + kMargin + kFactor * (pixel / kSides);
  const std::size_t x = i % 3 * kCellWidth + kMargin + kFactor * (pixel % kSides);
  for (std::size_t c = 0; c < 3; ++c) {
    const int own = picture.pixels[pixel];
    const int expected = label == 0 ? own : (own + kColours[label][c] + 1) / 2;
    if (sheet.row(static_cast<std::int64_t>(y))[3 * x + c] != expected) return false;
  }
  return true;
}

Ended check_data(const std::string& spec, const Arguments& more = {}) {
  return run_command(with({"data", "check", spec, "--quiet"}, more));
}

/// The report, which ends with this exit code.
nlohmann::json report_of(const std::string& spec, int code) {
  const Ended ended = check_data(spec, {"--json"});
  INFO(ended.err);
  REQUIRE(ended.code == code);
  return nlohmann::json::parse(ended.out);
}

}  // namespace

TEST_CASE("masks are checked, packed and learned from, the same from a folder and from shards", "[cli][masks]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string images = write_streets(folder) + ",classes=3";
  const nlohmann::json whole = report_of(images, 0);
  CHECK(whole["bad"].empty());
  CHECK(whole["classes"].empty());  // of images, which have none
  CHECK(whole["masks"]["classes"] == 3);
  CHECK(whole["masks"]["pixels_without_class"] == 6 * kSide);
  // Of the stripes of 7, 8, 8 and 8 columns, each class has each place twice: the sums are those of all six masks.
  CHECK(whole["masks"]["pixels"] == nlohmann::json({2 * (7 + 8 + 8 + 8) * kSide, 2 * 31 * kSide, 2 * 31 * kSide}));

  const std::string shards = printed_spec(images, (folder / "x-%03d.tar").string(), {"--shard-samples", "3"});
  CHECK(shards == fmt::format("'tar:{}/x-{{000..001}}.tar,classes=3'", folder.path().string()));
  const std::string tar = shards.substr(1, shards.size() - 2);
  nlohmann::json packed = report_of(tar, 0);
  CHECK(packed["masks"] == whole["masks"]);
  CHECK(packed["images"]["mean"] == whole["images"]["mean"]);

  const std::string weights = (folder / "w.safetensors").string();
  const Arguments how{"--image", "32", "--batch", "3", "--epochs", "2", "--validate", "none", "--out", weights};
  const std::vector<double> losses = losses_of(folder, "unet", images, how);
  const auto evaluated = [&](const std::string& spec) {
    const Ended ended =
        run_command({"evaluate", weights, "--data", spec, "--split", "train", "--device", cheap_device(), "--json"});
    INFO(ended.err);
    REQUIRE(ended.code == 0);
    return nlohmann::json::parse(ended.out);
  };
  const nlohmann::json of_folder = evaluated(images), of_tar = evaluated(tar);
  CHECK(of_folder["loss"] == of_tar["loss"]);
  CHECK(of_folder["accuracy"] == of_tar["accuracy"]);
  REQUIRE(losses.size() >= 2);
  CHECK(losses_of(folder, "unet", tar, how) == losses);

  const auto predicted = [&](const Arguments& what, const char* name) {
    const Arguments line{"predict", weights, "--device", cheap_device(), "--sheet", (folder / name).string()};
    const Ended ended = run_command(with(with(line, {"--out", (folder / "logits").string(), "--json"}), what));
    INFO(ended.err);
    REQUIRE(ended.code == 0);
    return nlohmann::json::parse(ended.out);
  };
  const nlohmann::json shares = predicted({"--data", images, "--split", "train"}, "folder.png");
  CHECK(predicted({"--data", tar, "--split", "train"}, "tar.png") == shares);
  CHECK(content_of(folder / "folder.png") == content_of(folder / "tar.png"));
  REQUIRE(shares.size() == 6);
  // The shares are those of the likeliest classes.
  const Tensor logits = io::read_safetensors(folder / "logits").tensors.at("outputs");
  REQUIRE(logits.shape() == Shape{6, 3, kSide, kSide});
  const auto values = logits.values<float>();
  constexpr std::size_t kPixels = kSide * kSide;
  data::Image sheet;
  const std::string sheet_file = content_of(folder / "folder.png");
  data::decode_image(std::as_bytes(std::span(sheet_file.data(), sheet_file.size())), 3, sheet);
  std::array<double, 3> both{}, either{};
  for (std::size_t i = 0; i < 6; ++i) {
    std::array<int, 3> counts{};
    const data::Image mask = mask_of(static_cast<int>(i));
    const data::Image picture = make_picture(kSide, kSide, 1, static_cast<int>(i));
    std::int64_t wrong_colours = 0;
    for (std::size_t pixel = 0; pixel < kPixels; ++pixel) {
      const auto at = [&](std::size_t c) { return values[(3 * i + c) * kPixels + pixel]; };
      const std::size_t best = at(1) > at(0) ? (at(2) > at(1) ? 2 : 1) : (at(2) > at(0) ? 2 : 0);
      ++counts[best];
      for (std::uint8_t c = 0; c < 3 && mask.pixels[pixel] != 255; ++c) {
        both[c] += best == c && mask.pixels[pixel] == c ? 1 : 0;
        either[c] += best == c || mask.pixels[pixel] == c ? 1 : 0;
      }
      wrong_colours += is_painted(sheet, i, pixel, picture, best) ? 0 : 1;
    }
    CHECK(wrong_colours == 0);
    for (std::size_t c = 0; c < 3; ++c) {
      CHECK(shares[i]["predictions"][fmt::format("class {}", c)].get<double>() == counts[c] / 1024.0);
    }
  }
  double mean = 0;
  for (std::size_t c = 0; c < 3; ++c) {
    CHECK(of_folder["metrics"][fmt::format("IoU of class {}", c)].get<double>() == Approx(both[c] / either[c]));
    mean += both[c] / either[c] / 3;
  }
  CHECK(of_folder["metrics"]["mean IoU"].get<double>() == Approx(mean));
  // Of a file, as of the sample that it is.
  const nlohmann::json file = predicted({(folder / "images/2.png").string()}, "file.png");
  CHECK(file[0]["predictions"] == shares[2]["predictions"]);
}

TEST_CASE("shards with masks are for segmentation, and for classes where there are some", "[cli][masks]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string tar = packed_spec(write_streets(folder), (folder / "x.tar").string());
  CHECK(tar == "tar:" + (folder / "x.tar").string());  // no classes=, as before
  check_refusal({"train", "resnet18", "--data", tar + ",classes=3", "--device", cheap_device()}, 2,
                {"resnet18 is a model for classification", "has classes of pixels"});
  write_picture(folder, "plain/a/0.png", kSide, kSide, 3, 0);
  write_picture(folder, "plain/b/1.png", kSide, kSide, 3, 1);
  const std::string plain = packed_spec("folder:" + (folder / "plain").string(), (folder / "plain/p.tar").string());
  check_refusal({"train", "unet", "--data", plain, "--device", cheap_device()}, 2,
                {"unet is a model for segmentation, and no sample", "has a mask (seg.png"});
  check_refusal({"train", "unet", "--data", "folder:" + (folder / "plain").string(), "--device", cheap_device()}, 2,
                {"unet is a model for segmentation, and folder:", "has no masks: add masks=DIR and classes=N"});
  for (const std::string& spec : {plain + ",classes=3", "folder:" + (folder / "plain").string() + ",classes=3"}) {
    check_refusal({"data", "check", spec}, 2, {"classes= is the number of classes in masks, and there are no masks"});
  }
  check_refusal({"data", "check", tar + ",classes=256"}, 2, {"tar: classes=256 is not a number from 2 to 255"});
}

TEST_CASE("masks that are missing or wrong are named by check, and stop or leave a packing", "[cli][masks]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string without_classes = write_streets(folder), spec = without_classes + ",classes=3";
  std::filesystem::remove(folder / "labels/0.png");
  write_picture(folder, "labels/1.png", kSide, kSide, 3, 1);  // colours
  data::Image small = mask_of(2);
  small.height = kSide / 2;
  small.pixels.resize(small.pixels.size() / 2);
  write_file(folder / "labels/2.png", data::encode_png(small));
  data::Image large = mask_of(3);
  large.pixels[static_cast<std::size_t>(5 * kSide + 7)] = 3;  // the first number that is none of three classes
  write_file(folder / "labels/3.png", data::encode_png(large));

  const std::map<std::string, std::string> expected{
      {"0.png", "there is no mask: cannot open"},
      {"1.png",
       "its mask is no PNG of up to 8 bits with a palette or grey levels, whose numbers are the classes; it is "
       "a PNG with colours (RGB) without a palette"},
      {"2.png", "its mask has 16 × 32 pixels, the image has 32 × 32"},
      {"3.png", "its mask has the number 3 (row 5, column 7); 3 classes have the numbers 0 to 2"}};
  const nlohmann::json report = report_of(spec, 1);
  REQUIRE(report["bad"].size() == 4);
  for (const nlohmann::json& bad : report["bad"]) {
    const std::string name = std::filesystem::path(bad["name"].get<std::string>()).filename().string();
    INFO(name);
    CHECK_THAT(bad["reason"].get<std::string>(), test::contains(expected.at(name)));
  }
  CHECK(report["masks"]["pixels"].size() == 3);
  CHECK(check_data(spec).code == 1);

  // A training leaves them out, or stops at the first one.
  std::filesystem::remove(folder / "labels/2.png");
  const auto train_with = [&](const char* bad) {
    return run_command({"train", "unet", "--data", spec, "--image", "32", "--batch", "3", "--max-steps", "2",
                        "--validate", "none", "--bad", bad, "--sampler", "sequential", "--device", cheap_device()});
  };
  write_file(folder / "labels/0.png", content_of(folder / "labels/3.png"));
  const Ended trained = train_with("skip");
  CHECK(trained.code == 0);
  CHECK_THAT(trained.err, test::contains("images/0.png: its mask has the number 3; 3 classes") &&
                              test::contains("images/3.png: its mask has the number 3; 3 classes"));
  const Ended stopped = train_with("fail");
  CHECK(stopped.code == 1);
  CHECK_THAT(stopped.err, test::contains("images/0.png: its mask has the number 3; 3 classes"));
  std::filesystem::remove(folder / "labels/0.png");
  write_file(folder / "labels/2.png", data::encode_png(small));

  // Without the number of classes, numbers are not checked, and that is said.
  const nlohmann::json unknown = report_of(without_classes, 1);
  CHECK(unknown["bad"].size() == 3);
  CHECK_THAT(unknown["warnings"].dump(),
             test::contains("the number of classes is not given") && test::contains("the largest is 3: add classes=4"));

  const Ended failed = pack(spec, (folder / "x.tar").string());
  CHECK(failed.code == 1);
  CHECK_THAT(failed.err, test::contains("0.png: there is no mask") && test::contains("--bad skip leaves them out"));
  CHECK_FALSE(std::filesystem::exists(folder / "x.tar"));
  for (const Arguments& more : {Arguments{}, Arguments{"--side", "16"}}) {
    const Ended skipped = pack(spec, (folder / "x.tar").string(), with({"--bad", "skip", "--force"}, more));
    INFO(skipped.err);
    CHECK(skipped.code == 0);
    CHECK_THAT(skipped.out, test::contains("2 samples") && test::contains("left out: 4 bad samples"));
    for (const auto& [name, reason] : expected) {
      CHECK_THAT(skipped.err, test::contains(name) && test::contains(reason));
    }
  }
  check_refusal({"data", "check", fmt::format("folder:{},masks={}", (folder / "images").string(), "nowhere")}, 1,
                {"there is no folder of masks nowhere"});
}

TEST_CASE("masks of parts lie in folders that are named like the parts", "[cli][masks]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  for (const char* const part : {"train", "val"}) {
    for (int i = 0; i < 3; ++i) {
      const bool is_val = part == std::string("val");
      write_picture(folder, fmt::format("images/{}/{}.png", part, i), kSide, kSide, 3, i + (is_val ? 9 : 0));
      std::filesystem::create_directories(folder / "labels" / part);
      data::Image mask = mask_of(i);
      if (is_val) std::ranges::fill(mask.pixels, std::uint8_t{1});
      write_file(folder / fmt::format("labels/{}/{}.png", part, i), data::encode_png(mask));
    }
  }
  const std::string spec =
      fmt::format("folder:{},masks={},classes=3", (folder / "images").string(), (folder / "labels").string());
  const nlohmann::json report = report_of(spec, 0);
  CHECK(report["samples"] == 6);
  CHECK(report["masks"]["pixels_without_class"] == 3 * kSide);
  CHECK(report["masks"]["pixels"][1] == (31 + 3 * kSide) * kSide);
}

TEST_CASE("parts of a set with masks may have other folders, as cities have", "[cli][masks]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  for (const std::string place : {"train/aachen", "train/bochum", "val/frankfurt"}) {
    write_picture(folder, fmt::format("images/{}/0.png", place), kSide, kSide, 3,
                  static_cast<int>(place.size() + static_cast<unsigned char>(place.back())));
    std::filesystem::create_directories(folder / "labels" / place);
    write_file(folder / "labels" / place / "0.png", data::encode_png(mask_of(0)));
  }
  const std::string spec =
      fmt::format("folder:{},masks={},classes=3", (folder / "images").string(), (folder / "labels").string());
  const nlohmann::json report = report_of(spec, 0);
  CHECK(report["samples"] == 3);
  CHECK(report["classes"].empty());
  CHECK_THAT(report["warnings"].dump(), !test::contains("one class only"));
  const Ended packed = pack(spec, (folder / "v.tar").string(), {"--part", "validation"});
  INFO(packed.err);
  CHECK(packed.code == 0);
}

TEST_CASE("masks of 0 and 255 are refused by a training, and told by an evaluation", "[cli][masks]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string right = write_streets(folder) + ",classes=3", weights = (folder / "w.safetensors").string();
  const Arguments how{"--image", "32", "--batch", "3", "--max-steps", "1", "--validate", "none", "--out", weights};
  static_cast<void>(losses_of(folder, "unet", right, how));
  for (int i = 0; i < 6; ++i) {
    data::Image mask = mask_of(i);
    for (std::uint8_t& number : mask.pixels) number = number == 1 ? 255 : 0;
    write_file(folder / fmt::format("labels/{}.png", i), data::encode_png(mask));
  }
  check_refusal({"train", "unet", "--data", right, "--device", cheap_device()}, 1,
                {"all pixels of the masks with a class are of class 0", "such as 1 instead of 255"});
  const Ended evaluated = run_command({"evaluate", weights, right, "--device", cheap_device()});
  INFO(evaluated.err);
  CHECK(evaluated.code == 0);
  CHECK_THAT(evaluated.err, test::contains("all pixels of the masks with a class are of class 0"));

  for (int i = 0; i < 6; ++i) {
    data::Image mask = mask_of(i);
    std::ranges::fill(mask.pixels, std::uint8_t{255});
    write_file(folder / fmt::format("labels/{}.png", i), data::encode_png(mask));
  }
  const Ended nothing = run_command({"evaluate", weights, right, "--device", cheap_device()});
  CHECK(nothing.code == 1);
  CHECK_THAT(nothing.err, test::contains("no label counts: all have the number that means no class"));
  CHECK_THAT(nothing.out, !test::contains("accuracy"));
}
