// concord predict where there is no class to name: numbers of images and recordings, outputs that are not finite,
// damaged samples of a data set; and what is said of files that are none of these.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "cli/pictures.hpp"
#include "cli/process.hpp"
#include "concord/io/npy.hpp"
#include "concord/io/safetensors.hpp"

using namespace concord;
using namespace concord::test;

namespace {

constexpr std::int64_t kSide = 28;

Arguments on_device(const Arguments& line) { return with(line, {"--device", cheap_device()}); }

nlohmann::json predictions_of(const Arguments& line, int code = 0) {
  const Ended ended = run_command(on_device(with(line, {"--json"})));
  INFO(ended.err);
  REQUIRE(ended.code == code);
  return nlohmann::json::parse(ended.out);
}

}  // namespace

TEST_CASE("a network for numbers predicts numbers of new images, as of those of a list", "[cli][own_data]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  std::string list;
  for (int i = 0; i < 8; ++i) {
    const std::string name = fmt::format("{}/{}.png", i % 2 == 0 ? "even" : "odd", i);
    write_picture(folder, "data/" + name, kSide, kSide, 1, i);
    list += fmt::format("{} {}.5\n", name, i);
  }
  write_file(folder / "list.txt", list);
  const std::string pictures = "folder:" + (folder / "data").string(), weights = (folder / "w.safetensors").string();
  const std::string data = pictures + ",list=" + (folder / "list.txt").string();
  REQUIRE(run_command(on_device({"train", "lenet", "--data", data, "--batch", "4", "--validate", "none", "--quiet",
                                 "--out", weights}))
              .code == 0);
  const std::string out = (folder / "out.safetensors").string(), file = (folder / "data/odd/3.png").string();
  const nlohmann::json of_file = predictions_of({"predict", weights, file, "--out", out});
  REQUIRE(of_file.size() == 1);
  CHECK_FALSE(of_file[0].contains("probability"));
  const float number = of_file[0]["predictions"]["target 0"].get<float>();
  CHECK(number == io::read_safetensors(out).tensors.at("outputs").values<float>()[0]);
  const nlohmann::json of_data = predictions_of({"predict", weights, "--data", data, "--count", "8"});
  REQUIRE(of_data.size() == 8);
  CHECK_THAT(of_data[3]["predictions"]["target 0"].get<float>(), Catch::Matchers::WithinAbs(number, 1e-4));

  check_refusal(on_device({"predict", weights, file, "--top", "2"}), 2, {"this network predicts numbers"});
  check_refusal(on_device({"evaluate", weights, pictures}), 2, {"the network predicts numbers, and", "has classes"});
}

TEST_CASE("outputs that are not finite are no prediction, and arrays need no labels", "[cli][own_data]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const auto write_arrays = [&](const char* name, float third) {
    std::vector<float> values(static_cast<std::size_t>(6 * kSide * kSide), 0.5F);
    values[static_cast<std::size_t>(2 * kSide * kSide)] = third;
    io::write_npy(folder / name, Tensor::of<float>(Shape{6, 1, kSide, kSide}, values));
    io::write_npy(folder / "y.npy", Tensor::of<std::int32_t>(Shape{6}, std::vector<std::int32_t>{0, 1, 0, 1, 0, 1}));
    return fmt::format("npy:{},{}", (folder / name).string(), (folder / "y.npy").string());
  };
  const std::string good = write_arrays("good.npy", 0.5F), weights = (folder / "w.safetensors").string();
  REQUIRE(run_command(on_device({"train", "lenet", "--data", good, "--batch", "6", "--validate", "none", "--quiet",
                                 "--out", weights}))
              .code == 0);
  const std::string bad = write_arrays("bad.npy", std::numeric_limits<float>::quiet_NaN());
  const nlohmann::json all = predictions_of({"predict", weights, "--data", bad, "--count", "6"}, 1);
  REQUIRE(all.size() == 6);
  for (std::size_t i = 0; i < 6; ++i) {
    INFO(i);
    CHECK(all[i].contains("error") == (i == 2));
    CHECK(all[i].contains("predicted") == (i != 2));
  }
  CHECK(all[2]["error"] == "the outputs of the network are NaN or infinite");

  // Features alone.
  const std::string features = (folder / "good.npy").string();
  const nlohmann::json labelled = predictions_of({"predict", weights, "--data", good, "--count", "6"});
  for (const Arguments& data : {Arguments{features}, Arguments{"--data", "npy:" + features}}) {
    const nlohmann::json alone = predictions_of(with({"predict", weights}, data));
    REQUIRE(alone.size() == 6);
    for (std::size_t i = 0; i < 6; ++i) {
      CHECK_FALSE(alone[i].contains("label"));
      CHECK(alone[i]["predicted"] == labelled[i]["predicted"]);
    }
  }
  check_refusal(on_device({"predict", weights, features, features}), 2, {"one .npy file of features alone"});
  check_refusal(on_device({"evaluate", weights, "npy:" + features}), 2, {"only predict needs no labels"});
}

TEST_CASE("a damaged sample of a data set has its error, and the others their classes", "[cli][own_data]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  for (int i = 0; i < 6; ++i) write_picture(folder, fmt::format("data/{}/{}.png", i % 2, i), kSide, kSide, 1, i);
  const std::string data = "folder:" + (folder / "data").string(), weights = (folder / "w.safetensors").string();
  REQUIRE(run_command(on_device({"train", "lenet", "--data", data, "--batch", "6", "--validate", "none", "--quiet",
                                 "--out", weights}))
              .code == 0);
  const Arguments line{"predict", weights, "--data", data, "--split", "train", "--sheet", (folder / "s.png").string()};
  const nlohmann::json before = predictions_of(line);
  REQUIRE(before.size() == 6);
  write_file(folder / "data/0/2.png", "no picture");
  const nlohmann::json after = predictions_of(line, 1);
  REQUIRE(after.size() == 6);
  for (std::size_t i = 0; i < 6; ++i) {
    INFO(i);
    if (i == 1) {  // rows are in the order of classes and names: 0/0, 0/2, …
      CHECK_THAT(after[i]["error"].get<std::string>(), test::contains("no image of a known format"));
    } else {
      CHECK(after[i]["label"] == before[i]["label"]);
      CHECK(after[i]["predicted"] == before[i]["predicted"]);
    }
  }
  // In batches, damaged or not, the same.
  CHECK(predictions_of(with(line, {"--batch", "1"}), 1).size() == 6);
  const Ended shown = run_command(on_device(line));
  CHECK_THAT(shown.err, test::contains("1 of 6 samples could not be predicted"));
}

TEST_CASE("names of files are on one line of every message", "[cli][own_data]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string start = (folder / "a\nb").string(), shown = (folder / "a\\x0ab").string();
  write_file(start + ".csv", "a,b\n\"1,2\n");
  write_file(start + ".npy", "x");
  write_file(start + ".safetensors", "damaged, so that it has to be named");
  for (const std::string& spec :
       {"csv:" + start + ".csv,label=b", "csv:" + start + ".csv,label=c", "npy:" + start + ".npy," + start + ".npy",
        "npz:" + start + ".npy", "csv:" + start + "x,label=c", "npz:" + start + ".npz", "folder:" + start,
        "lmdb:" + start, "audio:" + start}) {
    const Ended ended = run_command({"data", "check", spec});
    INFO(ended.err);
    CHECK(ended.code != 0);
    CHECK_THAT(ended.err, test::contains(shown));
    CHECK(std::ranges::count(ended.err, '\n') == 1);
  }
  check_refusal({"predict", start + ".safetensors", "x.png"}, 1, {shown + ".safetensors, byte 0"});
  check_refusal({"predict", start + "x.safetensors", "x.png"}, 1, {shown + "x.safetensors: no such file"});
  check_refusal({"train", "lenet", "--data", "random", "--out", start + "/w"}, 1, {shown + "/w cannot be written"});
}
