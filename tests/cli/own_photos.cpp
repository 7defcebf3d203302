// Photos of one's own, from the folder to the names of new ones: coloured shapes on a noisy ground, drawn here.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/pictures.hpp"
#include "cli/process.hpp"
#include "concord/weights/file.hpp"

using namespace concord;
using namespace concord::test;

namespace {

const std::vector<std::string> kShapes{"circle", "cross", "square"};

/// A shape of any bright colour, somewhere in a dark picture.
data::Image draw_shape(std::size_t shape, std::uint32_t seed) {
  std::uint32_t state = seed * 2654435761U + static_cast<std::uint32_t>(shape) + 1;
  const auto random = [&](std::uint32_t below) {
    state = state * 1664525U + 1013904223U;
    return static_cast<int>((state >> 16) % below);
  };
  data::Image image;
  image.resize(40, 48, 3);
  const int x0 = 18 + random(12), y0 = 16 + random(8), radius = 10 + random(5);
  const std::array<int, 3> colour{120 + random(136), 120 + random(136), 120 + random(136)};
  for (int y = 0; y < 40; ++y) {
    for (int x = 0; x < 48; ++x) {
      const int dx = std::abs(x - x0), dy = std::abs(y - y0);
      const bool is_in = shape == 0   ? dx * dx + dy * dy <= radius * radius
                         : shape == 1 ? std::min(dx, dy) <= 2 && std::max(dx, dy) <= radius
                                      : std::max(dx, dy) <= radius;
      for (int c = 0; c < 3; ++c) {
        const int value = random(60) + (is_in ? colour.at(static_cast<std::size_t>(c)) - 30 : 0);
        image.row(y)[3 * x + c] = static_cast<std::uint8_t>(std::clamp(value, 0, 255));
      }
    }
  }
  return image;
}

std::string photo_file(std::size_t shape, std::uint32_t seed, bool is_jpeg) {
  const data::Image image = draw_shape(shape, seed);
  return is_jpeg ? data::encode_jpeg(image, 90) : data::encode_png(image);
}

}  // namespace

TEST_CASE("a network learns photos in folders and names new ones", "[cli][own_data]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  for (std::size_t shape = 0; shape < kShapes.size(); ++shape) {
    std::filesystem::create_directories(folder / ("photos/" + kShapes[shape]));
    std::filesystem::create_directories(folder / ("new/" + kShapes[shape]));
    for (std::uint32_t i = 0; i < 60; ++i) {
      const bool is_jpeg = i % 2 == 0;
      write_file(folder / fmt::format("photos/{}/{}.{}", kShapes[shape], i, is_jpeg ? "jpg" : "png"),
                 photo_file(shape, i, is_jpeg));
    }
    for (std::uint32_t i = 0; i < 10; ++i) {
      write_file(folder / fmt::format("new/{}/{}.jpg", kShapes[shape], i), photo_file(shape, 1000 + i, true));
    }
  }
  const std::string weights = (folder / "w.safetensors").string(), sheet = (folder / "sheet.png").string();
  const Arguments device{"--device", cheap_device()};
  const Ended trained =
      run_command(with({"train", "resnet20:depth=1,width=8", "--data", "folder:" + (folder / "photos").string(),
                        "--augment", "flip", "--epochs", "20", "--batch", "16", "--optimizer", "adam", "--lr", "0.005",
                        "--schedule", "cosine", "--quiet", "--out", weights},
                       device));
  INFO(trained.err);
  REQUIRE(trained.code == 0);
  const Ended named =
      run_command(with({"predict", weights, (folder / "new").string(), "--json", "--sheet", sheet}, device));
  INFO(named.err);
  REQUIRE(named.code == 0);
  const auto predictions = nlohmann::json::parse(named.out);
  REQUIRE(predictions.size() == 30);
  int right = 0;
  for (const auto& prediction : predictions) {
    const std::string file = prediction["sample"], name = prediction["name"];
    right += file.find("/" + name + "/") != std::string::npos ? 1 : 0;
  }
  CHECK(right >= 27);
  CHECK(content_of(sheet).starts_with("\x89PNG"));
}

TEST_CASE("several labels on the lines of a list are refused with advice for the command", "[cli][own_data]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  for (int i = 0; i < 2; ++i) write_picture(folder, fmt::format("set/{}.png", i), 28, 28, 1, i);
  write_file(folder / "set/s.txt", "0.png 1 0.5\n1.png 0 1.5\n");
  const std::string set = (folder / "set").string();
  check_refusal({"train", "lenet", "--data", fmt::format("folder:{0},list={0}/s.txt", set)}, 2,
                {"has 2 columns of labels", "Keep one label on each line"});
}

TEST_CASE("weights of a training with auxiliary classifiers are those of the network", "[cli][own_data]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  for (std::uint32_t i = 0; i < 8; ++i) {
    const std::string name = fmt::format("photos/{}/{}.png", kShapes[i % 2], i);
    std::filesystem::create_directories((folder / name).parent_path());
    write_file(folder / name, photo_file(i % 2, i, false));
  }
  const std::string data = "folder:" + (folder / "photos").string(), weights = (folder / "w.safetensors").string();
  const Arguments with_them{"train",       "googlenet", "--data",      data,     "--image",  "64",
                            "--batch",     "4",         "--validate",  "none",   "--device", cheap_device(),
                            "--max-steps", "1",         "--auxiliary", "--quiet"};
  REQUIRE(run_command(with(with_them, {"--out", weights})).code == 0);
  CHECK(weights::File(weights).tensors().contains("aux1.fc2.weight"));
  const Ended evaluated =
      run_command({"evaluate", weights, data, "--split", "train", "--device", cheap_device(), "--json"});
  INFO(evaluated.err);
  CHECK(evaluated.code == 0);
  CHECK(run_command(with(with_them, {"--weights", weights})).code == 0);
}

TEST_CASE("torchvision's weights of GoogLeNet and Inception v3 come with advice on the colours", "[cli][own_data]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  write_picture(folder, "photos/a/0.png", 80, 80, 3, 1);
  write_picture(folder, "photos/b/0.png", 80, 80, 3, 2);
  const std::string weights = (folder / "theirs.safetensors").string();
  io::write_safetensors(weights, {{"another", Tensor(DType::f32, {1})}});
  const auto said = [&](const std::string& network, const Arguments& more) {
    return run_command(with({"evaluate", network, weights, "--data", "folder:" + (folder / "photos").string(),
                             "--split", "train", "--device", cheap_device()},
                            more))
        .err;
  };
  const std::string advice = "--mean 0.5,0.5,0.5 --deviation 0.5,0.5,0.5";
  CHECK_THAT(said("googlenet", {}), contains("weights of googlenet need " + advice));
  CHECK_THAT(said("inception_v3", {}), contains("weights of inception_v3 need " + advice));
  CHECK_FALSE(contains(said("googlenet", {"--mean", "0.5,0.5,0.5", "--deviation", "0.5,0.5,0.5"}), advice));
  CHECK_FALSE(contains(said("resnet20:depth=1,width=8", {}), advice));
}
