// The text of augmentations, the ranges of transforms, and preprocessing as JSON.
#include "concord/data/image/transform.hpp"

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "concord/data/image/preprocessing.hpp"
#include "concord_test.hpp"

using namespace concord;
using namespace concord::test;

namespace {

data::Preprocessing example_preprocessing() {
  return {.height = 192,
          .width = 256,
          .resize = 224,
          .channels = 3,
          .mean = {0.485f, 0.456f, 0.406f},
          .deviation = {0.229f, 0.224f, 0.225f},
          .class_names = {"cat", "a \"quoted\"\nname", "Käse", std::string("\xff\x00z", 3), ""}};
}

void check_json_refused(const std::string& text, const std::string& part) {
  CAPTURE(text);
  CHECK_THROWS_AS(data::Preprocessing::from_json(text, "net: preprocessing"), FormatError);
  CHECK_THROWS_WITH(data::Preprocessing::from_json(text, "net: preprocessing"),
                    contains("net: preprocessing") && contains(part));
}

}  // namespace

TEST_CASE("augmentations are read from text and printed back", "[data]") {
  const data::ImageAugmentation a = data::parse_augment("flip,rrc,jitter=0.4:0.3:0.2:0.1,cutout=0.5,randaugment=3:7");
  CHECK(a.resized_crop == data::RandomResizedCrop{0.08, 1});
  CHECK(a.flip == 0.5);
  CHECK(a.jitter == data::ColourJitter{0.4, 0.3, 0.2, 0.1});
  CHECK(a.cutout == 0.5);
  CHECK(a.rand_augment == data::RandAugment{3, 7});
  CHECK(a.str() == "rrc,flip,randaugment=3:7,jitter=0.4:0.3:0.2:0.1,cutout=0.5");
  CHECK(data::parse_augment("affine=10:0.1:0.9:1.1:5").affine == data::RandomAffine{10, 0.1, 0.9, 1.1, 5});
  CHECK(data::parse_augment("rotate=15,shear=3").affine == data::RandomAffine{15, 0, 1, 1, 3});
  CHECK(data::parse_augment("none").is_empty());
  for (const char* text : {"none", "rrc", "rrc=0.3:0.9", "crop=4", "flip", "flip=0.25", "vflip", "vflip=1",
                           "randaugment=2:9", "rotate=15", "affine=1:0.5:0.5:2:3", "jitter=1:0:0:0.5", "erase",
                           "erase=0.1", "crop=4,flip,vflip=0.1,rotate=2.5,cutout=0.25,erase=1"}) {
    CHECK(data::parse_augment(text).str() == text);
  }
  for (const char* text :
       {"rrc=0.3", "randaugment", "randaugment=1", "rotate=1,shear=2", "jitter=0.1", "affine=3:0.1"}) {
    const data::ImageAugmentation read = data::parse_augment(text);
    CHECK_FALSE(read.is_empty());
    CHECK(data::parse_augment(read.str()) == read);
  }
}

TEST_CASE("an unknown augmentation is answered with all there are", "[data]") {
  CHECK_THROWS_WITH(data::parse_augment("rrc,flop"), contains("there is no \"flop\"") && contains("rrc[=SMALLEST") &&
                                                         contains("jitter=BRIGHTNESS") && contains("erase[=P]"));
  CHECK_THROWS_WITH(data::parse_augment(""), contains("rrc"));
  CHECK_THROWS_WITH(data::parse_augment("flip,flip"), contains("flip is there twice"));
  CHECK_THROWS_WITH(data::parse_augment("flip=0.5:1"), contains("flip has 2 numbers; it is flip[=P]"));
  CHECK_THROWS_WITH(data::parse_augment("crop"), contains("crop=PIXELS"));
  CHECK_THROWS_WITH(data::parse_augment("crop=1.5"), contains("whole numbers"));
  CHECK_THROWS_WITH(data::parse_augment("flip=0,5"), contains("there is no \"5\""));
  CHECK_THROWS_WITH(data::parse_augment("flip=2"), contains("outside [0, 1]"));
  CHECK_THROWS_WITH(data::parse_augment("jitter=0.1:0.1:0.1:0.6"), contains("hue") && contains("0.5"));
  CHECK_THROWS_WITH(data::parse_augment("rrc,crop=4"), contains("both choose"));
  CHECK_THROWS_WITH(data::parse_augment("affine=3,rotate=3"), contains("take it alone"));
  CHECK_THROWS_WITH(data::parse_augment("rrc=0.9:0.2"), contains("smallest"));
  CHECK_THROWS_WITH(data::parse_augment("affine=1:0:0.5"), contains("only one"));
  CHECK_THROWS_WITH(data::parse_augment("randaugment=2:31"), contains("magnitude"));
  for (const char* text : {"flip=", "flip=nan", "flip=inf", "flip= 1", "flip=1x", "jitter=:", "jitter=0.1:", ",flip",
                           "flip,,vflip", "crop=-1", "crop=1e30", "RRC", "none,flip", "rrc=0", "\xff=1", "flip=-0.1"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(data::parse_augment(text), ArgumentError);
  }
}

TEST_CASE("transforms have ranges and a usual resize", "[data]") {
  data::ImageTransform transform;
  CHECK(transform.resized() == 256);
  transform.height = 32, transform.width = 64;
  CHECK(transform.resized() == 37);
  transform.resize = 40;
  CHECK(transform.resized() == 40);
  CHECK(transform.fill(1) == 0);
  transform.mean = {0.5f, 0.456f, 2.0f};
  CHECK((transform.fill(0) == 128 && transform.fill(1) == 116 && transform.fill(2) == 255));
  const auto refuses = [](auto&& change) {
    data::ImageTransform bad;
    change(bad);
    CHECK_THROWS_AS(bad.check(), ArgumentError);
  };
  refuses([](auto& t) { t.height = 0; });
  refuses([](auto& t) { t.width = data::kLongestSide + 1; });
  refuses([](auto& t) { t.resize = -1; });
  refuses([](auto& t) { t.channels = 4; });
  refuses([](auto& t) { t.mean = {0.5f}; });
  refuses([](auto& t) { t.mean = {0.5f, 0.5f, std::numeric_limits<float>::quiet_NaN()}; });
  refuses([](auto& t) { t.deviation = {1, 0, 1}; });
  refuses([](auto& t) { t.deviation = {1, -1, 1}; });
  refuses([](auto& t) { t.augmentation.crop = -1; });
}

TEST_CASE("preprocessing is the same after JSON", "[data]") {
  const data::Preprocessing before = example_preprocessing();
  const std::string text = before.to_json();
  CHECK(data::Preprocessing::from_json(text, "net") == before);
  CHECK(text.substr(0, 100) ==
        R"({"version":1,"height":192,"width":256,"resize":224,"channels":3,"mean":[0.485,0.456,0.406],"deviatio)");
  data::Preprocessing odd;
  odd.channels = 1;
  odd.mean = {std::numeric_limits<float>::denorm_min()};
  odd.deviation = {std::numeric_limits<float>::max()};
  CHECK(data::Preprocessing::from_json(odd.to_json(), "net") == odd);
  const data::ImageTransform transform = data::evaluation_of(before);
  CHECK((transform.height == 192 && transform.width == 256 && transform.resize == 224));
  CHECK(transform.augmentation.is_empty());
  CHECK(data::preprocessing_of(transform, before.class_names) == before);
}

TEST_CASE("damaged preprocessing is refused", "[data]") {
  nlohmann::json good;
  {
    const std::string text = example_preprocessing().to_json();
    CHECK_NOTHROW(data::Preprocessing::from_json(text, "net"));
    check_json_refused(text.substr(0, text.size() - 1), "");
    check_json_refused(text + "x", "");
    good = nlohmann::json::parse(text);
  }
  check_json_refused("", "");
  check_json_refused("[]", "not a JSON object");
  for (const char* field : {"version", "height", "width", "resize", "channels", "mean", "deviation", "classes"}) {
    nlohmann::json bad = good;
    bad.erase(field);
    check_json_refused(bad.dump(), fmt::format("\"{}\"", field));
    bad[field] = "text";
    check_json_refused(bad.dump(), field);
    bad[field] = nullptr;
    check_json_refused(bad.dump(), field);
  }
  const auto with = [&](const char* field, const nlohmann::json& value) {
    nlohmann::json bad = good;
    bad[field] = value;
    return bad.dump();
  };
  check_json_refused(with("version", 2), "version 2");
  check_json_refused(with("colour", 1), "\"colour\" is not known");
  check_json_refused(with("height", 0), "height 0");
  check_json_refused(with("height", 1e9), "height");
  check_json_refused(with("channels", 2), "2 channels");
  check_json_refused(with("mean", {0.5}), "1 values of the mean");
  check_json_refused(with("mean", {0.5, true, 0.5}), "mean");
  check_json_refused(with("mean", {0.5, 1e39, 0.5}), "mean");
  check_json_refused(with("mean", nlohmann::json::array({1, 1, 1, 1})), "mean");
  check_json_refused(with("deviation", {0.5, 0, 0.5}), "deviation 0");
  check_json_refused(with("classes", nlohmann::json::array({"a", 1})), "class 1");
  check_json_refused(with("classes", nlohmann::json::array({{{"hex", "0"}}})), "class 0");
  check_json_refused(with("classes", nlohmann::json::array({{{"hex", "0g"}}})), "class 0");
  check_json_refused(with("classes", nlohmann::json::array({{{"hex", "00"}, {"x", 1}}})), "class 0");
}
