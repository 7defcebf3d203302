// Numbers, names and options of data mean the same to the weights as in their training, or are refused.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/pictures.hpp"
#include "cli/process.hpp"
#include "data/audio/wav_files.hpp"

using namespace concord;
using namespace concord::test;

namespace {

Ended train_quietly(const std::string& network, const std::string& data, const Arguments& more = {}) {
  return run_command(with({"train", network, "--data", data, "--device", cheap_device(), "--quiet"}, more));
}

double accuracy_of(const std::string& weights, const std::string& data) {
  const Ended ended = run_command({"evaluate", weights, data, "--device", cheap_device(), "--json"});
  INFO(ended.err);
  REQUIRE(ended.code == 0);
  return nlohmann::json::parse(ended.out)["accuracy"];
}

/// folder/digits/0 to 11 with pictures that are bright in one of twelve places, and list.txt with their numbers.
void write_twelve_classes(const TemporaryFolder& folder) {
  std::string list;
  for (std::size_t label = 0; label < 12; ++label) {
    std::filesystem::create_directories(folder / fmt::format("digits/{}", label));
    for (int i = 0; i < 4; ++i) {
      std::string pixels(28 * 28, static_cast<char>(i));
      for (std::size_t at = 0; at < 63; ++at) pixels[label * 63 + at] = static_cast<char>(120);
      write_file(folder / fmt::format("digits/{}/{}.pgm", label, i), "P5\n28 28\n255\n" + pixels);
      list += fmt::format("{0}/{1}.pgm {0}\n", label, i);
    }
  }
  write_file(folder / "list.txt", list);
}

}  // namespace

TEST_CASE("weights of numbered classes know the folders that are named by numbers", "[cli][own_data]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  write_twelve_classes(folder);
  const std::string digits = "folder:" + (folder / "digits").string(), weights = (folder / "w.safetensors").string();
  const std::string listed = digits + ",list=" + (folder / "list.txt").string();
  const Ended trained = train_quietly("mlp:width=32", listed,
                                      {"--image", "28", "--epochs", "40", "--batch", "12", "--optimizer", "adam",
                                       "--lr", "0.01", "--validate", "none", "--out", weights});
  INFO(trained.err);
  REQUIRE(trained.code == 0);
  const double right = accuracy_of(weights, digits + ",test=" + (folder / "digits").string());
  CHECK(right > 0.9);  // in the order of bytes "10" and "11" come before "2": two of twelve
  const Ended validated = train_quietly(
      "mlp:width=32", listed + ",val=" + (folder / "digits").string(),
      {"--image", "28", "--epochs", "40", "--batch", "12", "--optimizer", "adam", "--lr", "0.01", "--json"});
  INFO(validated.err);
  REQUIRE(validated.code == 0);
  CHECK(nlohmann::json::parse(validated.out)["validation"]["accuracy"] > 0.9);

  std::filesystem::rename(folder / "digits/3", folder / "digits/three");
  check_refusal({"evaluate", weights, digits, "--device", cheap_device()}, 2,
                {"the class \"three\" is unknown: the training had the numbers 0 to 11 as classes"});
}

TEST_CASE("codes with zeros in front are the same classes in every file", "[cli][own_data]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  std::string rows = "a,b,code\n";
  for (int i = 0; i < 60; ++i) rows += fmt::format("{},{},0{}\n", i % 3 + i % 5 * 0.01, i % 7, i % 3 + 1);
  write_file(folder / "t.csv", rows);
  write_file(folder / "v.csv", "a,b,code\n0,1,01\n1,2,02\n2,3,03\n");
  const std::string table = (folder / "t.csv").string(), weights = (folder / "w.safetensors").string();
  const Ended trained = train_quietly(
      "mlp:width=16", fmt::format("csv:{},label=code,categories=code,val={}", table, (folder / "v.csv").string()),
      {"--epochs", "60", "--optimizer", "adam", "--lr", "0.01", "--out", weights});
  INFO(trained.err);
  REQUIRE(trained.code == 0);
  CHECK(accuracy_of(weights, "csv:" + (folder / "v.csv").string()) == 1);
  check_refusal({"evaluate", weights, "csv:" + table + ",decimal=dot"}, 2, {"decimal=dot is neither point nor comma"});
}

TEST_CASE("arrays are refused for numbers that are not finite, and whole numbers are features", "[cli][own_data]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  std::vector<std::int64_t> whole, classes;
  std::vector<std::uint8_t> one_hot;
  for (std::int64_t i = 0; i < 40; ++i) {
    whole.insert(whole.end(), {i % 2 * 10, i % 5});
    classes.push_back(i % 2);
    one_hot.insert(one_hot.end(), {static_cast<std::uint8_t>(1 - i % 2), static_cast<std::uint8_t>(i % 2)});
  }
  std::vector<float> damaged(80, 1);
  damaged[11] = NAN;
  damaged[17] = INFINITY;
  write_npy(folder / "whole.npy", "<i8", "(40, 2)", whole);
  write_npy(folder / "y.npy", "<i8", "(40,)", classes);
  write_npy(folder / "hot.npy", "|u1", "(40, 2)", one_hot);
  write_npy(folder / "nan.npy", "<f4", "(40, 2)", damaged);
  const auto pair = [&](const char* x, const char* y) {
    return fmt::format("npy:{},{}", (folder / x).string(), (folder / y).string());
  };
  const std::string weights = (folder / "w.safetensors").string();
  const Ended trained = train_quietly("mlp:width=8", pair("whole.npy", "y.npy"), {"--epochs", "1", "--out", weights});
  INFO(trained.err);
  REQUIRE(trained.code == 0);
  const Ended predicted =
      run_command({"predict", weights, (folder / "whole.npy").string(), "--device", cheap_device()});
  INFO(predicted.err);
  CHECK(predicted.code == 0);
  check_refusal({"train", "mlp:width=8", "--data", pair("nan.npy", "y.npy"), "--device", cheap_device()}, 1,
                {"the features of sample 5 have nan, and 2 of 80 numbers are NaN or infinite"});
  check_refusal({"train", "mlp:width=8", "--data", pair("y.npy", "nan.npy"), "--device", cheap_device()}, 1,
                {"the targets of sample 5 have nan"});
  check_refusal({"train", "mlp:width=8", "--data", pair("whole.npy", "hot.npy"), "--device", cheap_device()}, 2,
                {"has 2 whole numbers as the label of a sample", "numpy.argmax(y, 1)"});

  const Ended at_home =
      run_command({"data", "check", "npy:~/whole.npy,~/y.npy", "--quiet"}, {{"HOME", folder.path().string()}});
  INFO(at_home.err);
  CHECK(at_home.code == 0);
}

TEST_CASE("a text is predicted and evaluated as a whole, if no part is asked for", "[cli][own_data]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 200; ++i) text += "abc";
  write_file(folder / "t.txt", text);
  write_file(folder / "prompt.txt", "abcabcabcabcabcabca");  // 19 characters
  const std::string weights = (folder / "w.safetensors").string(), all = "text:" + (folder / "t.txt").string();
  const Ended trained =
      train_quietly("gpt_tiny:depth=1,width=16,heads=2,length=16", all, {"--max-steps", "1", "--out", weights});
  INFO(trained.err);
  REQUIRE(trained.code == 0);
  const auto evaluated = [&](const Arguments& more) {
    const Ended ended = run_command(with({"evaluate", weights, all, "--device", cheap_device(), "--json"}, more));
    INFO(ended.err);
    REQUIRE(ended.code == 0);
    return nlohmann::json::parse(ended.out);
  };
  const nlohmann::json whole = evaluated({}), end = evaluated({"--split", "test"});
  CHECK(whole["split"] == "all");
  CHECK(whole["samples"] == 37);  // of 600 characters
  CHECK(end["split"] == "test");
  CHECK(end["samples"] == 3);  // of 60
  const std::string prompt = "text:" + (folder / "prompt.txt").string();
  const Ended written =
      run_command({"predict", weights, "--data", prompt, "--generate", "5", "--device", cheap_device()});
  INFO(written.err);
  CHECK(written.code == 0);
  CHECK_THAT(written.err, test::contains("the whole text is taken, 1 sample"));
}

TEST_CASE("options of recordings that contradict the weights are refused", "[cli][own_data]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  std::string list;
  for (int i = 0; i < 4; ++i) {
    write_file(folder / fmt::format("{}.wav", i), wav(sine(300 + 200 * i, 16000, 8000)));
    list += fmt::format("{}.wav {}\n", i, i % 2 == 0 ? "low" : "high");
  }
  write_file(folder / "list.txt", list);
  const std::string data = "audio:" + (folder / "list.txt").string(), weights = (folder / "w.safetensors").string();
  const Ended trained = train_quietly("mlp:width=4", data + ",mels=16,rate=8000",
                                      {"--max-steps", "1", "--validate", "none", "--out", weights});
  INFO(trained.err);
  REQUIRE(trained.code == 0);
  CHECK(accuracy_of(weights, data + ",mels=16,rate=8000") >= 0);
  for (const std::string option : {"mels=8", "rate=16000", "seconds=2", "normalise=none"}) {
    check_refusal({"evaluate", weights, data + "," + option, "--device", cheap_device()}, 2,
                  {option + " is not what the weights were trained with; leave it out"});
  }
}
