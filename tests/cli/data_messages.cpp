// What the command says of data that does not fit: how images get other channels, columns that a table lacks, options
// for classes without classes, words that are none of an option's.
#include <fmt/format.h>

#include "cli/process.hpp"
#include "concord/io/npy.hpp"

using namespace concord;
using namespace concord::test;

namespace {

/// What --data takes for images of noise, u8 (8, channels, 16, 16), of two classes.
std::string write_arrays(const TemporaryFolder& folder, std::int64_t channels) {
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(8 * channels * 256));
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(i * 7 % 251);
  const auto x = folder / fmt::format("x{}.npy", channels), y = folder / "y.npy";
  io::write_npy(x, Tensor::of<std::uint8_t>(Shape{8, channels, 16, 16}, pixels));
  io::write_npy(y, Tensor::of<std::int32_t>(Shape{8}, std::vector<std::int32_t>{0, 1, 0, 1, 0, 1, 0, 1}));
  return fmt::format("npy:{},{}", x.string(), y.string());
}

}  // namespace

TEST_CASE("a network that needs other channels says which networks fit and how to convert", "[cli][own_data]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  check_refusal(
      {"train", "resnet18", "--data", write_arrays(folder, 1)}, 2,
      {"has [1, 16, 16]", "Networks for images of 1 channel: ", "lenet", "folder:", "numpy.repeat(x, 3, axis=1)"});
  check_refusal({"train", "lenet", "--data", write_arrays(folder, 3)}, 2,
                {"has [3, 16, 16]", "Networks for images of 3 channels: ", "x.mean(axis=1, keepdims=True)"});
  check_refusal({"train", "resnet18", "--data", write_digits(folder / "digits", 20, 10)}, 2,
                {"but the model needs [3, 224, 224]. Networks for images of 1 channel: "});
}

TEST_CASE("a table says which column it lacks, and weights what they predict", "[cli][own_data]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  std::string text = "x,kind,price\n";
  for (int i = 0; i < 40; ++i) text += fmt::format("{},{},{}\n", i, i % 2 == 0 ? "ant" : "bee", i / 8.0);
  write_file(folder / "t.csv", text);
  write_file(folder / "v.csv", "x,price\n1,2\n");
  const std::string csv = "csv:" + (folder / "t.csv").string(), none = "csv:" + (folder / "v.csv").string();
  const std::string weights = (folder / "w.safetensors").string(), val = ",val=" + (folder / "v.csv").string();
  const Arguments network{"train", "mlp:width=4", "--device", cheap_device(), "--quiet", "--max-steps", "2", "--data"};
  check_refusal(with(network, {csv + ",label=kind,drop=price" + val}), 2, {"v.csv has no column 'kind', the label"});
  check_refusal(with(network, {csv + ",label=kind,target=price" + val}), 2,
                {"v.csv does not have all columns of labels: 'kind', 'price'"});
  REQUIRE(run_command(with(network, {csv + ",label=kind", "--out", weights})).code == 0);
  check_refusal({"evaluate", weights, none}, 2, {"v.csv has no column 'kind', the label; only predict needs none"});
  for (const char* command : {"evaluate", "predict"}) {
    check_refusal({command, weights, "--data", csv + ",label=price"}, 2,
                  {"label=price is none of what the weights were trained to predict: kind"});
    check_refusal({command, weights, "--data", csv + ",drop=x"}, 2,
                  {"drop=x: the weights were trained with this column"});
  }
  check_refusal(with(network, {csv + ",target=price", "--weights", weights}), 2, {"target=price is none of what"});
  check_refusal(with(network, {(folder / "t.csv").string()}), 2, {"is no kind of data", "csv:", "label=COLUMN"});
}

TEST_CASE("options for classes need samples with classes", "[cli][own_data]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  std::string text = "x,price\n";
  for (int i = 0; i < 40; ++i) text += fmt::format("{},{}\n", i, i / 8.0);
  write_file(folder / "t.csv", text);
  const Arguments command{"train",    "mlp:width=4",
                          "--data",   fmt::format("csv:{},target=price", (folder / "t.csv").string()),
                          "--device", cheap_device()};
  for (const char* weights : {"balanced", "1,2"}) {
    check_refusal(with(command, {"--class-weights", weights}), 2, {"--class-weights", "t.csv has numbers to predict"});
  }
  check_refusal(with(command, {"--sampler", "balanced"}), 2, {"--sampler balanced: t.csv has numbers to predict"});
  check_refusal(with(command, {"--label-smoothing", "0.1"}), 2, {"--label-smoothing: t.csv has numbers to predict"});

  // Masks have a class for each pixel.
  std::filesystem::create_directory(folder / "images");
  std::filesystem::create_directory(folder / "masks");
  for (int i = 0; i < 4; ++i) {
    write_file(folder / fmt::format("images/{}.pgm", i), "P5 16 16 255\n" + std::string(256, 'a'));
    write_file(folder / fmt::format("masks/{}.pgm", i), "P5 16 16 255\n" + std::string(256, static_cast<char>(i % 2)));
  }
  check_refusal({"train", "unet", "--data",
                 fmt::format("folder:{},masks={},classes=2", (folder / "images").string(), (folder / "masks").string()),
                 "--image", "16", "--class-weights", "balanced", "--device", cheap_device()},
                2, {"--class-weights balanced", "give one number for each class"});
}

TEST_CASE("a word that is none of an option's is answered with the words, and the one that was meant", "[cli]") {
  if (!command_is_there()) return;
  check_refusal({"predict", "w.safetensors", "--split", "val"}, 2,
                {"--split: 'val' is none of train, validation, test. Did you mean validation?"});
  check_refusal({"evaluate", "w.safetensors", "--split", "tets"}, 2, {"Did you mean test?"});
  check_refusal({"predict", "w.safetensors", "--format", "yaml"}, 2, {"--format: 'yaml' is none of table, csv, json"});
}
