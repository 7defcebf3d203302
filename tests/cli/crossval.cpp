// concord crossval: what it counts, an interruption, and options that would look at the fold that is scored.
#include <algorithm>
#include <csignal>
#include <nlohmann/json.hpp>

#include "cli/process.hpp"

using namespace concord;
using namespace concord::test;

namespace {

/// A cross-validation that is interrupted when its progress says `text`.
Ended interrupted(const std::string& folds, const std::string& epochs, const std::string& text) {
  const TemporaryFolder folder;
  const std::string data = write_digits(folder / "data", 300, 10);
  Process process(command_path(), {"crossval", "mlp:width=8", "--data", data, "--folds", folds, "--epochs", epochs,
                                   "--batch", "10", "--device", cheap_device(), "--json"});
  REQUIRE(process.wait_for_error_text(text));
  process.send(SIGINT);
  Ended ended = process.finish();
  INFO(ended.err);
  CHECK(ended.code == 130);
  return ended;
}

}  // namespace

TEST_CASE("each data set of a cross-validation counts in what was uploaded", "[cli][crossval]") {
  if (!command_is_there()) return;
  const auto uploaded = [](const std::string& networks) {
    const Ended ended = run_command({"crossval", networks, "--data", "random,samples=60", "--folds", "2", "--batch",
                                     "10", "--device", cheap_device(), "--quiet", "--json"});
    INFO(ended.err);
    REQUIRE(ended.code == 0);
    return nlohmann::json::parse(ended.out)["uploaded_bytes"].get<std::int64_t>();
  };
  const std::int64_t one = uploaded("mlp:width=8");
  CHECK(one > 0);
  CHECK(uploaded("mlp:width=8+mlp:width=4") == 2 * one);
}

TEST_CASE("a cross-validation compares networks of different tasks", "[cli][crossval]") {
  if (!command_is_there()) return;
  for (const std::string networks : {"mlp:width=8+denoising_autoencoder", "denoising_autoencoder+mlp:width=8"}) {
    const Ended ended = run_command({"crossval", networks, "--data", "random,samples=40", "--folds", "2", "--batch",
                                     "10", "--device", cheap_device(), "--quiet"});
    INFO(ended.err << ended.out);
    CHECK(ended.code == 0);
    CHECK_THAT(ended.out, test::contains("accuracy %"));
    // The network without classes has no accuracy, and the losses of its folds.
    CHECK_THAT(ended.out, Catch::Matchers::Matches("[^]*mlp:width=8 +[0-9.]+ ± [0-9.]+ +[0-9.]+ ± [^]*") &&
                              Catch::Matchers::Matches("[^]*denoising_autoencoder +- +[0-9.]+ ± [^]*"));
  }
}

TEST_CASE("a cross-validation that is interrupted reports the folds before", "[cli][crossval]") {
  if (!command_is_there()) return;
  const Ended ended = interrupted("3", "60", "fold 2 of 3");
  INFO(ended.err);
  CHECK_THAT(ended.err, test::contains("interrupted in fold 2 of 3 of mlp:width=8, which does not count"));
  const auto report = nlohmann::json::parse(ended.out);
  CHECK(report["is_interrupted"] == true);
  REQUIRE(report["networks"].size() == 1);
  CHECK(report["networks"][0]["loss"]["folds"].size() == 1);
}

TEST_CASE("a cross-validation without a finished fold has no mean", "[cli][crossval]") {
  if (!command_is_there()) return;
  const Ended ended = interrupted("2", "5000", "fold 1 of 2");
  INFO(ended.err);
  const nlohmann::json loss = nlohmann::json::parse(ended.out)["networks"].at(0)["loss"];
  CHECK(loss["mean"].is_null());
  CHECK(loss["deviation"].is_null());
  CHECK(loss["folds"].empty());
}

TEST_CASE("logs of a cross-validation are of the last one", "[cli][crossval]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  for (int run = 0; run < 2; ++run) {
    REQUIRE(run_command({"crossval", "mlp:width=8", "--data", "random,samples=60", "--folds", "2", "--device",
                         cheap_device(), "--quiet", "--logs", folder.path().string()})
                .code == 0);
    const std::string log = content_of(folder / "mlp-width=8-fold1.jsonl");
    CHECK(std::ranges::count(log, '\n') == 2);  // one epoch, and the end
  }
}

TEST_CASE("a cross-validation chooses nothing by the fold that it scores", "[cli][crossval]") {
  if (!command_is_there()) return;
  const Arguments line{"crossval", "mlp", "--data", "random"};
  check_refusal(with(line, {"--patience", "2"}), 2, {"--patience watches validation losses"});
  check_refusal(with(line, {"--schedule", "plateau"}), 2, {"--schedule plateau watches validation losses"});
  CHECK_THAT(run_command({"crossval", "--help"}).out, test::contains("Refused: the"));
}
