// The command's way through a training: weights that are evaluated and used, a checkpoint left by Ctrl-C, another
// network's files, a full disk and a cache that cannot be written.
#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>

#include "cli/process.hpp"

using namespace concord;
using namespace concord::test;

namespace {

std::int64_t number_after(const std::string& text, const std::string& words) {
  std::smatch match;
  INFO(text);
  REQUIRE(std::regex_search(text, match, std::regex(words + " ([0-9]+)")));
  return std::stol(match[1]);
}

std::vector<std::string> files_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) names.push_back(entry.path().filename());
  return names;
}

}  // namespace

TEST_CASE("trained weights are evaluated and classify", "[cli]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string data = write_digits(folder / "data", 320, 40);
  const std::string weights = (folder / "net.safetensors").string(), log = (folder / "log").string();
  const Ended trained =
      run_command(train(data, {"--epochs", "2", "--out", weights, "--log", log, "--validate", "test"}));
  INFO(trained.err);
  REQUIRE(trained.code == 0);
  CHECK(trained.out.empty());
  CHECK_THAT(trained.err, test::contains("epoch 2/2") && test::contains("weights are in " + weights));
  std::ifstream lines(log);
  std::vector<nlohmann::json> events;
  for (std::string line; std::getline(lines, line);) events.push_back(nlohmann::json::parse(line));
  REQUIRE(events.size() == 4);
  CHECK(events[1]["steps"] == 64);
  CHECK(events[2]["reason"] == "finished");
  CHECK(events[3]["test"]["samples"] == 40);

  const Arguments saved{"mlp", "--data", data, "--device", cheap_device(), "--weights", weights, "--json"};
  const auto json_of = [&](const std::string& subcommand) {
    Arguments arguments{subcommand};
    arguments.insert(arguments.end(), saved.begin(), saved.end());
    const Ended ended = run_command(arguments);
    INFO(ended.err);
    REQUIRE(ended.code == 0);
    return nlohmann::json::parse(ended.out);
  };
  const auto metrics = json_of("evaluate");
  CHECK(metrics["samples"] == 40);
  CHECK(metrics["accuracy"] == 1);
  CHECK(metrics["accuracy"] == events[1]["validation"]["accuracy"]);
  CHECK(metrics["loss"].get<double>() == Approx(events[1]["validation"]["loss"].get<double>()));
  const auto predictions = json_of("predict");
  REQUIRE(predictions.size() == 10);
  for (std::size_t i = 0; i < 10; ++i) CHECK(predictions[i]["predicted"] == i);
  const auto refused = [&](const std::string& subcommand, const Arguments& more) {
    Arguments arguments{subcommand};
    arguments.insert(arguments.end(), saved.begin(), saved.end());
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Ended ended = run_command(arguments);
    CHECK(ended.code == 1);
    CHECK(ended.out.empty());
    return ended.err;
  };
  CHECK_THAT(refused("predict", {"--out", (folder / "none" / "x").string()}), test::contains("there is no folder"));
}

TEST_CASE("Ctrl-C leaves a whole checkpoint, and the training goes on to the same bits", "[cli]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string data = write_digits(folder / "data", 320, 10);
  const std::string checkpoint = (folder / "run.safetensors").string();
  Process process(command_path(), train(data, {"--epochs", "100000", "--checkpoint", checkpoint}));
  REQUIRE(process.wait_for_error_text("epoch 1/100000"));
  process.send(SIGINT);
  process.send(SIGINT);  // the same request by another sender, as of a launcher
  const Ended stopped = process.finish();
  INFO(stopped.err);
  CHECK(stopped.code == 130);
  CHECK_THAT(stopped.err, test::contains("continue with --resume " + checkpoint));
  const std::int64_t steps = number_after(stopped.err, "stopped after");
  CHECK(steps >= 29);  // a tenth is held out

  check_refusal(train(data, {"--resume", checkpoint, "--ema", "0.9"}), 2, {checkpoint, "had no averages", "--ema"});
  const std::string resumed_weights = (folder / "resumed").string(), whole_weights = (folder / "whole").string();
  const Ended resumed = run_command(
      train(data, {"--epochs", "100000", "--max-steps", "7", "--resume", checkpoint, "--out", resumed_weights}));
  INFO(resumed.err);
  CHECK(resumed.code == 0);
  CHECK(number_after(resumed.err, "resumed from .* after") == steps);
  CHECK(number_after(resumed.err, "stopped after") == steps + 7);
  const Ended whole = run_command(
      train(data, {"--epochs", "100000", "--max-steps", std::to_string(steps + 7), "--out", whole_weights}));
  CHECK(whole.code == 0);
  CHECK(content_of(resumed_weights) == content_of(whole_weights));
}

TEST_CASE("one request to end may come by several senders", "[cli]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string data = write_digits(folder / "data", 320, 10);
  const std::string checkpoint = (folder / "run.safetensors").string();
  Process process(command_path(), train(data, {"--epochs", "100000", "--checkpoint", checkpoint}));
  REQUIRE(process.wait_for_error_text("epoch 1/100000"));
  for (int i = 0; i < 3; ++i) process.send(SIGTERM);  // as a scheduler, a launcher and a shell
  const Ended stopped = process.finish();
  INFO(stopped.err);
  CHECK(stopped.code == 130);
  CHECK_THAT(stopped.err, test::contains("continue with --resume " + checkpoint));
  CHECK(std::filesystem::exists(checkpoint));
}

TEST_CASE("a signal that was ignored at the start stops no training, as under nohup", "[cli]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string data = write_digits(folder / "data", 320, 10);
  const Arguments shell{"-c", "trap '' HUP; exec \"$@\"", "sh", command_path()};
  Process process("/bin/sh", with(shell, train(data, {"--epochs", "100"})));
  REQUIRE(process.wait_for_error_text("epoch 1/100"));
  process.send(SIGHUP);
  const Ended ended = process.finish();
  INFO(ended.err);
  CHECK(ended.code == 0);
  CHECK_THAT(ended.err, test::contains("epoch 100/100"));
}

TEST_CASE("files of another network are refused by name", "[cli]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string data = write_digits(folder / "data", 20, 10);
  const std::string checkpoint = (folder / "run.safetensors").string(), weights = (folder / "net.safetensors").string();
  REQUIRE(run_command(train(data, {"--max-steps", "1", "--checkpoint", checkpoint, "--out", weights})).code == 0);
  const auto lenet = [&](const std::string& subcommand, const std::string& option, const std::string& file) {
    return run_command({subcommand, "lenet", "--data", data, "--device", cheap_device(), option, file});
  };
  const Ended other = lenet("train", "--resume", checkpoint);
  CHECK(other.code == 1);
  CHECK_THAT(other.err, test::contains(checkpoint) && test::contains("another network: 'mlp', not 'lenet'"));
  const Ended evaluated = lenet("evaluate", "--weights", weights);
  CHECK(evaluated.code == 1);
  CHECK_THAT(evaluated.err, test::contains(weights + ": weights of another network: ") && test::contains("missing"));

  const Ended no_checkpoint = run_command(train(data, {"--resume", weights}));
  CHECK(no_checkpoint.code == 1);
  CHECK_THAT(no_checkpoint.err, test::contains(weights + ": not a checkpoint"));
  const std::string whole = content_of(checkpoint);
  write_file(checkpoint, whole.substr(0, whole.size() / 2));
  const Ended cut = run_command(train(data, {"--resume", checkpoint}));
  CHECK(cut.code == 1);
  CHECK_THAT(cut.err, test::contains(checkpoint + ", byte ") && test::contains("outside the"));
}

TEST_CASE("a full disk is told, and leaves the file that was there", "[cli]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string data = write_digits(folder / "data", 20, 10);
  const auto out = folder / "out";
  std::filesystem::create_directory(out);
  for (const char* option : {"--out", "--checkpoint"}) {
    INFO(option);
    write_file(out / "file", "the last good one");
    const Ended ended = run_command_in_shell("trap '' XFSZ; ulimit -f 1000; exec \"$@\"",
                                             train(data, {"--max-steps", "1", option, (out / "file").string()}));
    CHECK(ended.code == 1);
    CHECK_THAT(ended.err, test::contains("concord: cannot write " + (out / "file").string()));
    CHECK(content_of(out / "file") == "the last good one");
    CHECK(files_in(out) == std::vector<std::string>{"file"});
  }
  if (!std::filesystem::exists("/dev/full")) {
    WARN("skipped: this system has no /dev/full");
    return;
  }
  const Ended logged = run_command(train(data, {"--max-steps", "1", "--log", "/dev/full"}));
  CHECK(logged.code == 1);
  CHECK_THAT(logged.err, test::contains("concord: /dev/full: cannot be written"));
  const Ended device = run_command(train(data, {"--max-steps", "1", "--out", "/dev/full"}));
  CHECK(device.code == 1);
  CHECK_THAT(device.err, test::contains("/dev/full") && test::contains("not a regular file"));
}

TEST_CASE("a training that loses its numbers ends with 1 and keeps the last good weights", "[cli]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string data = write_digits(folder / "data", 40, 10), weights = (folder / "net.safetensors").string();
  const Ended ended = run_command(train(data, {"--lr", "1e30", "--out", weights}));
  CHECK(ended.code == 1);
  CHECK_THAT(ended.err, test::contains("is not finite") && test::contains("the last good weights are in " + weights));
  const Ended evaluated =
      run_command({"evaluate", "mlp", "--data", data, "--device", cheap_device(), "--weights", weights});
  CHECK(evaluated.code == 1);  // they are so large that their loss is no number
  CHECK_THAT(evaluated.out, test::contains(" samples, loss "));
  CHECK_THAT(evaluated.err, test::contains("the loss is not finite"));
  const Ended unkept = run_command(train(data, {"--lr", "1e30", "--quiet"}));
  CHECK(unkept.code == 1);
  CHECK_THAT(unkept.err, test::contains("the weights are not saved: set --out or --checkpoint\n"));
}

TEST_CASE("a cache that cannot be written stops nothing", "[cli]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string data = write_digits(folder / "data", 20, 10), weights = (folder / "net.safetensors").string();
  REQUIRE(run_command(train(data, {"--max-steps", "1", "--out", weights})).code == 0);
  write_file(folder / "cache", "a file where a folder should be");
  for (const DevicePtr& device : devices()) {
    const DeviceInfo& info = device->info();
    INFO(info.id);
    const Ended ended =
        run_command({"predict", "mlp", "--data", data, "--weights", weights, "--device", info.id},
                    {{"CONCORD_CACHE_DIR", (folder / "cache").string()}, {"CONCORD_DRIVER_CACHE", "0"}});
    INFO(ended.err);
    CHECK(ended.code == 0);
    if (info.backend == "opencl") CHECK_THAT(ended.err, test::contains("CONCORD_CACHE_DIR"));
    CHECK(content_of(folder / "cache") == "a file where a folder should be");
  }
}

TEST_CASE("a language model keeps its alphabet", "[cli]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  std::string text, other;
  for (int i = 0; i < 300; ++i) text += "one two\n";
  for (int i = 0; i < 150; ++i) other += "to wet no";  // fewer characters than the model knows, in another order
  write_file(folder / "text", text);
  write_file(folder / "other", other);
  write_file(folder / "strange", other.substr(0, 700) + "x" + other.substr(700));
  const std::string weights = (folder / "w.safetensors").string(), checkpoint = (folder / "run.safetensors").string();
  const auto command = [&](const std::string& subcommand, const std::string& file, const Arguments& more) {
    Arguments all{subcommand, "char_gru", "--data", "text:" + (folder / file).string(), "--device", cheap_device()};
    all.insert(all.end(), more.begin(), more.end());
    return run_command(all);
  };
  const Ended trained = command(
      "train", "text", {"--epochs", "1", "--batch", "8", "--checkpoint", checkpoint, "--out", weights, "--quiet"});
  INFO(trained.err);
  REQUIRE(trained.code == 0);
  for (const std::string& saved : {weights, checkpoint}) {
    const Ended evaluated = command("evaluate", "other", {"--weights", saved, "--json"});
    INFO(evaluated.err);
    REQUIRE(evaluated.code == 0);
    CHECK(nlohmann::json::parse(evaluated.out)["samples"] > 0);
  }
  const Ended refused = command("evaluate", "strange", {"--weights", weights});
  CHECK(refused.code != 0);
  CHECK_THAT(refused.err, test::contains("strange, byte 700: the character 'x' (0x78)") && test::contains("of 7"));
  const Ended predicted = command("predict", "text", {"--weights", weights, "--json"});
  INFO(predicted.err);
  REQUIRE(predicted.code == 0);
  for (const auto& row : nlohmann::json::parse(predicted.out)) CHECK(row["predicted"] < 7);
  const Ended resumed = command("train", "other", {"--resume", checkpoint, "--max-steps", "1", "--batch", "8"});
  INFO(resumed.err);
  CHECK(resumed.code == 0);
}

TEST_CASE("weights that cannot be written are written elsewhere", "[cli]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string data = write_digits(folder / "data", 20, 10);
  std::filesystem::create_directory(folder / "out");
  std::filesystem::create_directory(folder / "tmp");
  const std::string out = (folder / "out" / "net.safetensors").string();
  // While it trains the folder goes, as a disk that is taken away.
  Process training(command_path(), train(data, {"--epochs", "2000", "--out", out}),
                   {{"TMPDIR", (folder / "tmp").string()}});
  REQUIRE(training.wait_for_error_text("epoch 1/"));
  std::filesystem::remove_all(folder / "out");
  training.send(SIGINT);
  const Ended ended = training.finish();
  INFO(ended.err);
  CHECK(ended.code == 1);
  const auto rescued = folder / "tmp" / "net.rescued.safetensors";
  CHECK_THAT(ended.err, test::contains("cannot write " + out) && test::contains(rescued.string()));
  CHECK(io::read_safetensors(rescued).tensors.size() >= 4);
}

TEST_CASE("a checkpoint that cannot be written is written elsewhere", "[cli]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string data = write_digits(folder / "data", 20, 10);
  std::filesystem::create_directory(folder / "out");
  std::filesystem::create_directory(folder / "tmp");
  Process training(command_path(),
                   train(data, {"--epochs", "20000", "--checkpoint", (folder / "out" / "run.safetensors").string()}),
                   {{"TMPDIR", (folder / "tmp").string()}});
  REQUIRE(training.wait_for_error_text("epoch 1/"));
  std::filesystem::remove_all(folder / "out");
  const Ended ended = training.finish();
  INFO(ended.err);
  CHECK(ended.code == 1);
  const auto rescued = folder / "tmp" / "run.rescued.safetensors";
  CHECK_THAT(ended.err, test::contains(rescued.string()));
  CHECK(run_command(train(data, {"--max-steps", "1", "--resume", rescued.string()})).code == 0);
}

TEST_CASE("a file that is missing or of another format ends with 1 everywhere", "[cli]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string data = write_digits(folder / "data", 20, 10), none = (folder / "none").string();
  const std::string torch = (folder / "net.pth").string();
  write_file(torch, "PK\x03\x04" + std::string(100, 'x'));
  const Arguments saved{"mlp", "--data", data, "--device", cheap_device(), "--weights"};
  const std::vector<Arguments> commands{train(data, {"--resume"}),
                                        train(data, {"--weights"}),
                                        with({"evaluate"}, saved),
                                        with({"predict"}, saved),
                                        {"replay"}};
  for (const Arguments& command : commands) {
    INFO(command[0]);
    check_refusal(with(command, {none}), 1, {none, "no such file"});
    check_refusal(with(command, {torch}), 1, {torch, "PyTorch"});
  }
  check_refusal(train("mnist:" + none, {}), 1, {none});
}
