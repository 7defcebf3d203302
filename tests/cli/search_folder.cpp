// What a folder of `concord search --out` keeps for the next search in it.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/process.hpp"
#include "concord/core/text.hpp"

namespace concord::test {
namespace {

/// A search in the folder "study", which it leaves with this exit code.
Ended search_in(const TemporaryFolder& folder, const Arguments& more, int code = 0) {
  const std::string data = "mnist:" + (folder / "digits").string();
  Ended ended = run_command(with({"search", "mlp:width=8", "--data", data, "--devices", cheap_device(), "--batch", "10",
                                  "--out", (folder / "study").string()},
                                 more));
  INFO(ended.err);
  CHECK(ended.code == code);
  return ended;
}

std::set<std::string> checkpoints_in(const std::filesystem::path& study) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(study)) {
    if (entry.path().extension() == ".ckpt") names.insert(entry.path().filename());
  }
  return names;
}

/// The checkpoints of trials that are paused, and how many epochs each trial has.
struct Found {
  std::set<std::string> paused;
  std::map<int, int> epochs;
};

Found asha(const TemporaryFolder& folder, const std::string& trials) {
  const Ended ended = search_in(folder, {"--space", "lr=log(1e-4,0.1)", "--scheduler", "asha", "--epochs", "9",
                                         "--seed", "2", "--trials", trials, "--json", "--quiet"});
  Found found;
  const nlohmann::json json = nlohmann::json::parse(ended.out);
  for (const nlohmann::json& trial : json["trials"]) {
    const int number = trial["trial"];
    if (trial["status"] == "paused") found.paused.insert(fmt::format("trial-{}.ckpt", number));
    found.epochs[number] = trial["epochs"];
  }
  return found;
}

}  // namespace

TEST_CASE("more trials of a finished asha search promote paused ones from their checkpoints", "[cli][search]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  static_cast<void>(write_digits(folder / "digits", 100, 10));
  const Found few = asha(folder, "5");
  CHECK(few.paused.size() >= 4);
  CHECK(checkpoints_in(folder / "study") == few.paused);
  const Found many = asha(folder, "20");
  CHECK(checkpoints_in(folder / "study") == many.paused);
  CHECK(std::ranges::any_of(few.epochs, [&](const auto& trial) { return many.epochs.at(trial.first) > trial.second; }));
  // The journal has each epoch of a trial once: none was trained again.
  std::map<std::string, int> times;
  for (const std::string& line : split(content_of(folder / "study/journal.jsonl"), '\n')) {
    const nlohmann::json event = line.empty() ? nlohmann::json() : nlohmann::json::parse(line);
    if (event.value("event", "") == "epoch") ++times[event["trial"].dump() + ", epoch " + event["epoch"].dump()];
  }
  CHECK(times.size() > 20);
  for (const auto& [epoch, number] : times) {
    INFO("trial " << epoch);
    CHECK(number == 1);
  }
}

TEST_CASE("a program that asks again in a folder replaces its weights only by better ones", "[cli][search]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string data = write_digits(folder / "digits", 100, 10), request = folder / "request";
  const std::filesystem::path best = folder / "study/best.safetensors";
  const auto asked = [&](const std::string& settings, const Arguments& more = {}) {
    write_file(request, "{\"ask\": 1, \"settings\": {" + settings + "}}\n");
    return run_command_in_shell(
        "exec \"$@\" < '" + request + "'",
        with({"search", "mlp:width=8", "--data", data, "--devices", cheap_device(), "--batch", "10", "--epochs", "2",
              "--ask-tell", "--quiet", "--out", (folder / "study").string()},
             more));
  };
  CHECK(asked(R"("lr": 0.001)").code == 0);
  const std::string first = content_of(best);
  REQUIRE_FALSE(first.empty());
  CHECK(asked(R"("lr": 1e-9)").code == 0);
  CHECK((content_of(best) == first));
  CHECK(asked(R"("lr": 0.05)").code == 0);
  CHECK((content_of(best) != first));
  const Ended other = asked(R"("lr": 0.05)", {"--monitor", "accuracy"});
  CHECK(other.code == 2);
  CHECK_THAT(other.err, test::contains("the best ones by --monitor loss, and this search has --monitor accuracy"));
  check_refusal({"search", "mlp:width=8", "--data", data, "--devices", cheap_device(), "--space", "lr=log(1e-4,1e-1)",
                 "--trials", "2", "--out", (folder / "study").string()},
                2, {"there is best.safetensors of another search in this folder"});
  REQUIRE(run_command(train(data, {"--epochs", "1", "--quiet", "--out", best.string()})).code == 0);
  const Ended unknown = asked(R"("lr": 0.05)");
  CHECK(unknown.code == 2);
  CHECK_THAT(unknown.err, test::contains("have no score of a search"));
}

}  // namespace concord::test
