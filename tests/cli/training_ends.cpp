// How a training ends: with a test loss that is not finite, without a reader of its progress, and with the best
// weights.
#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/process.hpp"

using namespace concord;
using namespace concord::test;

TEST_CASE("a test loss that is not finite ends a training with 1, and the weights are kept", "[cli]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string data = write_digits(folder / "data", 40, 10), weights = (folder / "net.safetensors").string();
  const Ended ended =
      run_command(train(data, {"--lr", "1e30", "--max-steps", "1", "--validate", "none", "--out", weights}));
  CHECK(ended.code == 1);
  CHECK_THAT(ended.err, test::contains("the loss of the test set is not finite"));
  CHECK(std::filesystem::exists(weights));
}

TEST_CASE("a reader of progress that goes away does not end a training", "[cli]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string data = write_digits(folder / "data", 40, 10), weights = (folder / "net.safetensors").string();
  const std::string code = (folder / "code").string();
  const std::string line = fmt::format("{{ \"$@\"; echo $? > '{}'; }} 2>&1 | head -n 1", code);
  CHECK(run_command_in_shell(line, train(data, {"--epochs", "30", "--out", weights})).code == 0);
  CHECK(content_of(code) == "0\n");
  CHECK(std::filesystem::exists(weights));
}

TEST_CASE("what --json says is of the weights that are written", "[cli]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string data = write_digits(folder / "data", 60, 10), log = (folder / "log").string();
  const Arguments line = train(data, {"--epochs", "40", "--patience", "2", "--lr", "0.5", "--clip-norm", "1",
                                      "--checkpoint", (folder / "run").string(), "--json", "--quiet"});
  const auto result_of = [](const Arguments& arguments) {
    const Ended ended = run_command(arguments);
    INFO(ended.err);
    REQUIRE(ended.code == 0);
    return nlohmann::json::parse(ended.out);
  };
  const nlohmann::json result = result_of(with(line, {"--log", log}));
  std::ifstream lines(log);
  std::string text;
  for (int epoch = 0; epoch < result["best_epoch"].get<int>(); ++epoch) std::getline(lines, text);
  const nlohmann::json best = nlohmann::json::parse(text);
  CHECK(best["epoch"] == result["best_epoch"]);
  CHECK(result["validation"]["loss"] == best["validation"]["loss"]);
  CHECK(result["train"]["loss"] == best["loss"]);
  // Again from the checkpoint of its end, which has trained no epoch itself.
  const nlohmann::json again = result_of(with(line, {"--resume", (folder / "run").string()}));
  CHECK(again["best_epoch"] == result["best_epoch"]);
  CHECK(again["validation"]["loss"].get<double>() == Approx(result["validation"]["loss"].get<double>()).epsilon(1e-5));
  CHECK(again["test"]["loss"] == result["test"]["loss"]);
}
