// Options of `concord train`: what it is validated on, begins with and goes on from, and the numbers of schedules,
// optimizers and losses; words that are misspelt.
#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/process.hpp"
#include "concord/io/npy.hpp"

using namespace concord;
using namespace concord::test;

TEST_CASE("a part of the training set is held out, and the test split is looked at once", "[cli]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string data = write_digits(folder / "data", 320, 40);
  const std::string log = (folder / "log").string(), checkpoint = (folder / "run").string();
  const auto events = [&](const Arguments& more) {
    std::filesystem::remove(log);
    const Ended ended = run_command(train(data, with(more, {"--log", log})));
    INFO(ended.err);
    REQUIRE(ended.code == 0);
    std::ifstream lines(log);
    std::vector<nlohmann::json> all;
    for (std::string line; std::getline(lines, line);) all.push_back(nlohmann::json::parse(line));
    return std::pair(std::move(all), ended.err);
  };
  const auto [split, said] = events({"--epochs", "2", "--checkpoint", checkpoint, "--validation-split", "0.25"});
  REQUIRE(split.size() == 4);
  CHECK(split[1]["validation"]["samples"] == 80);
  CHECK(split[1]["steps"] == 48);
  CHECK(split[3]["event"] == "test");
  CHECK(split[3]["test"]["samples"] == 40);
  CHECK_THAT(said, test::contains("240 samples, 80 more held out") && test::contains("test: loss"));

  const auto [again, unused] = events({"--epochs", "2", "--seed", "9", "--validation-split", "0.25"});
  CHECK(again[0]["validation"]["samples"] == 80);
  const auto [resumed, told] = events({"--epochs", "3", "--resume", checkpoint});  // held out as before
  CHECK(resumed[0]["steps"] == 72);
  CHECK_THAT(told, test::contains("240 samples"));
  const auto [none, quiet] = events({"--validate", "none"});
  CHECK_FALSE(none[0].contains("validation"));
  CHECK(none.back()["test"]["samples"] == 40);
  const Ended refused = run_command(train(data, {"--validate", "none", "--patience", "1"}));
  CHECK(refused.code == 2);
  CHECK_THAT(refused.err, test::contains("--patience needs a validation"));
  CHECK(run_command(train(data, {"--validation-split", "1"})).code == 2);
}

TEST_CASE("a last batch of one sample may be dropped or merged", "[cli]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string data = write_digits(folder / "data", 21, 10);
  for (const auto& [how, steps] : std::map<std::string, int>{{"keep", 3}, {"drop", 2}, {"merge", 2}}) {
    INFO(how);
    const std::string log = (folder / how).string();
    const Ended ended =
        run_command(train(data, {"--validate", "none", "--last-batch", how, "--log", log, "--epochs", "1"}));
    INFO(ended.err);
    REQUIRE(ended.code == 0);
    std::ifstream lines(log);
    std::string line;
    std::getline(lines, line);
    CHECK(nlohmann::json::parse(line)["steps"] == steps);
  }
}

TEST_CASE("random data is learned, and tested on the same classes", "[cli]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string log = (folder / "log").string();
  const Ended ended = run_command(
      {"train", "mlp", "--data", "random", "--device", cheap_device(), "--epochs", "1", "--log", log, "--quiet"});
  INFO(ended.err);
  REQUIRE(ended.code == 0);
  std::ifstream lines(log);
  std::string line;
  std::getline(lines, line);
  CHECK(nlohmann::json::parse(line)["validation"]["accuracy"] > 0.9);
}

TEST_CASE("a training that goes on has the seed that it began with", "[cli]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string run = (folder / "run").string(), first = (folder / "first").string();
  const std::string whole = (folder / "whole").string(), second = (folder / "second").string();
  const auto random = [&](const Arguments& more) {  // data that the seed makes
    const Ended ended = run_command(with({"train", "mlp", "--data", "random", "--device", cheap_device()}, more));
    INFO(ended.err);
    REQUIRE(ended.code == 0);
    return ended;
  };
  random({"--epochs", "2", "--seed", "5", "--out", whole});
  random({"--epochs", "1", "--seed", "5", "--checkpoint", run, "--out", first});
  const Ended resumed = random({"--epochs", "2", "--resume", run, "--seed", "7", "--out", second});
  CHECK_THAT(resumed.err, test::contains("--seed 7 is ignored") && test::contains("seed 5"));
  CHECK(content_of(second) == content_of(whole));
  CHECK_THAT(random({"--epochs", "1", "--resume", run}).err, test::contains("finished: it has done 1 of 1 epoch;"));
}

TEST_CASE("validations and tests report the plain loss, as evaluate does", "[cli]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string data = write_digits(folder / "data", 60, 20), out = (folder / "net.safetensors").string();
  const auto result_of = [](const Arguments& arguments) {
    const Ended ended = run_command(arguments);
    INFO(ended.err);
    REQUIRE(ended.code == 0);
    return nlohmann::json::parse(ended.out);
  };
  const nlohmann::json evaluated[] = {
      result_of(train(data, {"--label-smoothing", "0.4", "--out", out, "--json", "--quiet"})),
      result_of({"evaluate", out, data, "--device", cheap_device(), "--json"})};
  CHECK(evaluated[0]["test"]["loss"].get<double>() == Approx(evaluated[1]["loss"].get<double>()).epsilon(1e-6));
  // Trials compare by the same measure: without a rate that trains, all have the same.
  const nlohmann::json found =
      result_of({"search", "mlp:width=8", "--data", data, "--devices", cheap_device(), "--lr", "1e-30", "--space",
                 "label-smoothing={0,0.5}", "--scheduler", "grid", "--epochs", "1", "--json", "--quiet"});
  REQUIRE(found["trials"].size() == 2);
  CHECK(found["trials"][0]["best"]["loss"].get<double>() ==
        Approx(found["trials"][1]["best"]["loss"].get<double>()).epsilon(1e-6));
}

TEST_CASE("numbers of schedules, optimizers and losses are options", "[cli]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string data = write_digits(folder / "data", 40, 10);
  const std::string weights = "1,1,1,1,2,1,1,1,1,1";
  for (const char* schedule :
       {"constant:warmup=1", "cosine:end=1e-5,warmup=1", "linear", "polynomial:power=3", "step:size=1,gamma=0.5",
        "multistep:at=1+2", "exponential:gamma=0.8", "restarts:length=1", "inverse-sqrt:warmup=1",
        "plateau:patience=1,factor=0.5", "one-cycle:rise=0.4"}) {
    const Ended ended = run_command(
        train(data, {"--epochs", "3", "--schedule", schedule, "--optimizer", "adamw", "--betas", "0.8,0.99", "--eps",
                     "1e-7", "--class-weights", weights, "--label-smoothing", "0.1", "--quiet", "--json"}));
    INFO(schedule << ": " << ended.err);
    REQUIRE(ended.code == 0);
    const auto json = nlohmann::json::parse(ended.out);
    CHECK(json["epochs"] == 3);
    CHECK(json["end"] == "finished");
    CHECK(json["test"]["samples"] == 10);
    CHECK(json["validation"].contains("accuracy"));
  }
  check_refusal(train(data, {"--schedule", "cosine:foo=1"}), 2, {"--schedule", "'foo'", "end, warmup"});
  check_refusal(train(data, {"--schedule", "multistep"}), 2, {"multistep needs at"});
  check_refusal(train(data, {"--schedule", "cosin"}), 2, {"no schedule 'cosin'; did you mean cosine?"});
  check_refusal(train(data, {"--schedule", "step:size=0"}), 2, {"size is '0'"});
  check_refusal(train(data, {"--schedule", "cosine:warmup=5", "--epochs", "3"}), 2,
                {"the warmup of 5 epochs leaves none of 3"});
  check_refusal(train(data, {"--betas", "0.9,0.99"}), 2, {"--betas: sgd has no such option"});
  check_refusal(train(data, {"--class-weights", "1,2"}), 2, {"2 numbers for 10 classes"});
  check_refusal(train(data, {"--class-weights", "0,0,0,0,0,0,0,0,0,0"}), 2, {"--class-weights", "no class counts"});
  check_refusal(train(data, {"--freeze", "*"}), 2, {"--freeze * freezes every parameter"});
}

TEST_CASE("what is misspelt is told with what was meant", "[cli]") {
  if (!command_is_there()) return;
  check_refusal({"trian"}, 2, {"did you mean train?"});
  check_refusal({"train", "mlp", "--data", "random", "--epoch", "3"}, 2, {"no option --epoch; did you mean --epochs?"});
  check_refusal({"train", "mlp", "--data", "random", "--zzz"}, 2, {"no option --zzz"});
}

TEST_CASE("options of a training that would be ignored are refused", "[cli]") {
  if (!command_is_there()) return;
  const Arguments line{"train", "mlp", "--data", "random"};
  for (const char* const source : {"test", "none"}) {
    check_refusal(with(line, {"--validate", source, "--validation-split", "0.4"}), 2,
                  {"--validation-split is for --validate split"});
  }
  check_refusal(with(line, {"--validate", "none", "--validation-seed", "4"}), 2, {"--validation-seed"});
  check_refusal(with(line, {"--out", "w.pth"}), 2, {"--out w.pth: weights are written as safetensors"});
}

TEST_CASE("labels of a test part that the network has no output for are refused before the training", "[cli]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const auto write = [&](const std::string& name, std::int32_t last) {
    std::vector<std::int32_t> labels{0, 1, 2, 0, 1, 2, 0, 1, 2, last};
    io::write_npy(folder / ("x" + name), Tensor(DType::f32, Shape{10, 1, 28, 28}));
    io::write_npy(folder / ("y" + name), Tensor::of<std::int32_t>(Shape{10}, labels));
    return fmt::format("{},{}", (folder / ("x" + name)).string(), (folder / ("y" + name)).string());
  };
  const std::string data = fmt::format("npy:{},test={}", write("a.npy", 2), write("b.npy", 5));
  const std::string out = (folder / "w.safetensors").string();
  check_refusal(train(data, {"--out", out}), 2, {"the test part of the data: ", "labels up to 5", "3 outputs"});
  CHECK_FALSE(std::filesystem::exists(out));
}

TEST_CASE("weights stand behind a network whatever their ending, and data may begin with ~/", "[cli]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string data = write_digits(folder / "digits", 20, 10), checkpoint = (folder / "w.ckpt").string();
  REQUIRE(run_command(train(data, {"--max-steps", "1", "--checkpoint", checkpoint})).code == 0);
  const Arguments evaluate{"evaluate", "mlp", checkpoint};
  const Ended direct = run_command(with(evaluate, {data, "--device", cheap_device()}));
  INFO(direct.err);
  CHECK(direct.code == 0);
  CHECK_THAT(direct.out, test::contains("10 samples"));
  const std::string kind = data.substr(0, data.find(':') + 1);
  const Ended at_home =
      run_command(with(evaluate, {kind + "~/digits", "--device", cheap_device()}), {{"HOME", (folder / ".").string()}});
  INFO(at_home.err);
  CHECK(at_home.out == direct.out);
}

TEST_CASE("samples beyond the last one are told of", "[cli]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string data = write_digits(folder / "data", 20, 10), weights = (folder / "net.safetensors").string();
  REQUIRE(run_command(train(data, {"--max-steps", "1", "--out", weights})).code == 0);
  const Arguments predict{"predict", "mlp", "--data", data, "--device", cheap_device(), "--weights", weights};
  const Ended ended = run_command(with(predict, {"--first", "8", "--count", "5"}));
  CHECK(ended.code == 0);
  CHECK_THAT(ended.err, test::contains("the data has 10 samples, so --count is 2"));
  CHECK_FALSE(run_command(with(predict, {"--first", "8"})).err.find("samples, so") != std::string::npos);
}

TEST_CASE("a training begins with weights, and with a new head where the classes are others", "[cli]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string data = write_digits(folder / "data", 20, 10), weights = (folder / "net.safetensors").string();
  const std::string other = (folder / "other.safetensors").string(), again = (folder / "again.safetensors").string();
  REQUIRE(run_command(train(data, {"--max-steps", "1", "--out", weights})).code == 0);
  io::TensorMap tensors = io::read_safetensors(weights).tensors;
  const auto head = std::prev(tensors.end());
  const std::string head_name = head->first;
  head->second = Tensor(DType::f32, {3, 3});
  io::save_weights(other, tensors);
  const Ended whole =
      run_command(train(data, {"--lr", "1e-30", "--max-steps", "1", "--weights", weights, "--out", again}));
  INFO(whole.err);
  REQUIRE(whole.code == 0);
  CHECK_THAT(whole.err, test::contains("starts with the weights of " + weights));
  CHECK(content_of(again) == content_of(weights));
  check_refusal(train(data, {"--max-steps", "1", "--weights", other}), 1, {"1 of another shape (" + head_name});
  check_refusal(train(data, {"--weights", other, "--permit", "head"}), 2, {"--permit head"});
  check_refusal(train(data, {"--permit", "missing=*"}), 2, {"--permit needs --weights"});
  const Ended part =
      run_command(train(data, {"--max-steps", "1", "--weights", other, "--permit", "missing=" + head_name}));
  INFO(part.err);
  CHECK(part.code == 0);
  CHECK_THAT(part.err, test::contains("1 of another shape (" + head_name));
}
