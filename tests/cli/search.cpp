// concord search as a user runs it.
#include <fmt/format.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "cli/process.hpp"
#include "concord/core/text.hpp"

namespace concord::test {
namespace {

Arguments search(const std::string& data, const Arguments& more) {
  return with({"search", "mlp:width=8", "--data", data, "--devices", cheap_device(), "--batch", "10"}, more);
}

/// What a search has found, without what depends on time and place.
nlohmann::json found_in(const std::string& json) {
  nlohmann::json all = nlohmann::json::parse(json);
  for (nlohmann::json& trial : all["trials"]) {
    trial.erase("seconds");
    trial.erase("device");
  }
  return {all["trials"], all["best_trial"]};
}

nlohmann::json found_by(const Arguments& arguments, const Environment& environment = {}) {
  const Ended ended = run_command(with(arguments, {"--json", "--quiet"}), environment);
  INFO(ended.err);
  REQUIRE(ended.code == 0);
  return found_in(ended.out);
}

}  // namespace

TEST_CASE("a search prints its best trials and writes a page and the best weights", "[cli][search]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string data = write_digits(folder / "digits", 200, 20), out = (folder / "study").string();
  const Ended ended =
      run_command(search(data, {"--space", "lr=log(1e-4,0.1) depth=[1,2] optimizer={sgd,adam}", "--trials", "6",
                                "--epochs", "2", "--monitor", "accuracy", "--out", out}));
  INFO(ended.err);
  REQUIRE(ended.code == 0);
  CHECK(contains(ended.err, "180 samples, 20 for validation; random on"));
  CHECK(contains(ended.err, "trial 5 "));
  CHECK(contains(ended.err, "the best so far"));
  CHECK(contains(ended.out, "trial  "));
  CHECK(contains(ended.out, "accuracy %"));
  CHECK(contains(ended.out, "6 trials\n"));
  const std::string page = content_of(folder / "study/search.html");
  CHECK(contains(page, "<polyline class=\"line trial b0 best\""));
  CHECK_FALSE(contains(page, "<script"));
  CHECK_FALSE(contains(page, "nan"));
  // The best weights say which network they are of, and have the accuracy of the table on the same samples.
  const std::string weights = out + "/best.safetensors";
  const Ended evaluated =
      run_command({"evaluate", weights, data, "--split", "train", "--device", cheap_device(), "--json"});
  INFO(evaluated.err);
  CHECK(evaluated.code == 0);
}

TEST_CASE("the trials of a search do not depend on the number of devices, and data is uploaded once to each",
          "[cli][search]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string data = write_digits(folder / "digits", 100, 10);
  const Arguments arguments{"search",   "mlp:width=8", "--data",   data,
                            "--batch",  "10",          "--space",  "lr=log(1e-4,0.1) width=[4,8]",
                            "--trials", "6",           "--epochs", "1"};
  // As without sizes of its own: width is in the space.
  Arguments one = arguments;
  one[1] = "mlp";
  const Environment two_devices{{"POCL_DEVICES", "pthread pthread"}};
  const Ended listed = run_command({"devices"}, two_devices);
  if (!contains(listed.out, "opencl:1")) {
    WARN("skipped: there are no two devices of PoCL");
    return;
  }
  CHECK(found_by(with(one, {"--devices", "opencl:0"}), two_devices) ==
        found_by(with(one, {"--devices", "opencl:0,opencl:1"}), two_devices));
  const auto uploaded = [&](const std::string& devices) -> std::int64_t {
    const Ended ended = run_command(with(one, {"--devices", devices, "--json", "--quiet"}), two_devices);
    REQUIRE(ended.code == 0);
    return nlohmann::json::parse(ended.out)["uploaded_bytes"];
  };
  CHECK(uploaded("opencl:0") == 100 * (28 * 28 + 4));
  CHECK(uploaded("opencl:0,opencl:1") == 2 * 100 * (28 * 28 + 4));
}

TEST_CASE("a search that is killed goes on, and finds the same", "[cli][search]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string data = write_digits(folder / "digits", 300, 10);
  for (const std::string scheduler : {"asha", "tpe"}) {
    const Arguments arguments = search(
        data, {"--space", "lr=log(1e-4,0.1) depth=[1,3]", "--trials", "12", "--epochs", "9", "--scheduler", scheduler});
    const auto out = [&](const std::string& name) {
      return Arguments{"--out", (folder / (scheduler + name)).string()};
    };
    const nlohmann::json whole = found_by(with(arguments, out("whole")));
    const Arguments killed = with(arguments, out("killed"));
    for (const std::string seen : {"trial 2 ", "trial 7 "}) {
      Process process(command_path(), killed);
      REQUIRE(process.wait_for_error_text(seen));
      process.send(SIGKILL);
      CHECK(process.finish().code == 128 + SIGKILL);
    }
    CHECK(found_by(killed) == whole);
    CHECK(found_by(killed) == whole);  // nothing is left to do
    CHECK(content_of(folder / (scheduler + "killed") / "best.safetensors") ==
          content_of(folder / (scheduler + "whole") / "best.safetensors"));
    // Of trials that more trials may promote, and of no others.
    int checkpoints = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder / (scheduler + "killed"))) {
      if (entry.path().extension() == ".ckpt") ++checkpoints;
    }
    const auto is_paused = [](const nlohmann::json& trial) { return trial["status"] == "paused"; };
    CHECK(checkpoints == std::ranges::count_if(whole[0], is_paused));
    check_refusal(with(killed, {"--seed", "2"}), 2, {"journal of another search", "its seed is '1'"});
    check_refusal(with(killed, {"--momentum", "0.5"}), 2, {"journal of another search", "its options"});
  }
}

TEST_CASE("a trial that climbs rungs is the one that is trained at once", "[cli][search]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string data = write_digits(folder / "digits", 200, 10);
  const Arguments arguments = search(
      data, {"--space", "lr=log(1e-4,0.1) momentum=[0,0.9]", "--trials", "9", "--epochs", "9", "--schedule", "cosine"});
  const nlohmann::json at_once = found_by(arguments)[0], rungs = found_by(with(arguments, {"--scheduler", "asha"}))[0];
  int compared = 0;
  for (std::size_t i = 0; i < 9; ++i) {
    CHECK(rungs[i]["settings"] == at_once[i]["settings"]);
    if (rungs[i]["status"] != "finished" || rungs[i]["best"]["epoch"] != 9) continue;
    CHECK(rungs[i]["best"] == at_once[i]["best"]);
    ++compared;
  }
  CHECK(compared >= 1);
}

TEST_CASE("an interrupted search says how it continues", "[cli][search]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string data = write_digits(folder / "digits", 300, 10);
  const Arguments arguments = search(data, {"--space", "lr=log(1e-4,0.1)", "--trials", "3", "--epochs", "30"});
  const nlohmann::json whole = found_by(arguments);
  const Arguments stopped = with(arguments, {"--out", (folder / "study").string()});
  Process process(command_path(), stopped);
  REQUIRE(process.wait_for_error_text("trial 0 "));
  process.send(SIGINT);
  const Ended ended = process.finish();
  INFO(ended.err);
  CHECK(ended.code == 130);
  CHECK(contains(ended.err, "the same command continues it"));
  CHECK(found_by(stopped) == whole);
}

TEST_CASE("a search that goes on says after how many trials", "[cli][search]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string data = write_digits(folder / "digits", 40, 10);
  const auto errors_of = [&](const std::string& trials) {
    return run_command(search(data, {"--space", "lr=log(1e-4,0.1)", "--trials", trials, "--epochs", "1", "--out",
                                     (folder / "study").string()}))
        .err;
  };
  CHECK_THAT(errors_of("1"), !contains("goes on"));
  CHECK_THAT(errors_of("2"), contains("goes on after 1 trial of "));
  CHECK_THAT(errors_of("3"), contains("goes on after 2 trials of "));
}

TEST_CASE("trials that fail are named with their reason, and the search goes on", "[cli][search]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string data = write_digits(folder / "digits", 100, 10);
  const Arguments arguments = search(data, {"--scheduler", "grid", "--epochs", "1"});
  const Ended ended = run_command(with(arguments, {"--space", "lr={0.01,1e30} optimizer={sgd,adam} momentum=0.5"}));
  INFO(ended.err);
  CHECK(ended.code == 0);
  CHECK(contains(ended.out, "4 trials"));
  CHECK(contains(ended.out, "2 trials failed, such as 1: --momentum: adam has no such option"));
  CHECK(contains(ended.out, "trial 2 failed: "));
  const Ended all = run_command(with(arguments, {"--space", "lr={1e30,1e31}"}));
  CHECK(all.code == 1);
  CHECK(contains(all.err, "every trial failed"));
}

TEST_CASE("a trial that does not fit into memory fails, and the search goes on", "[cli][search]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string data = write_digits(folder / "digits", 100, 10);
  const Environment little{{"POCL_DEVICES", "pthread"},
                           {"CONCORD_DEBUG", "limit.memory=64000000,limit.allocation=64000000"}};
  const Ended listed = run_command({"devices"}, little);
  if (!contains(listed.out, "opencl:0")) {
    WARN("skipped: there is no device of PoCL");
    return;
  }
  const Ended ended = run_command(
      {"search", "mlp", "--data", data, "--devices", "opencl:0", "--scheduler", "grid", "--space", "width={8,200000}"},
      little);
  INFO(ended.err);
  CHECK(ended.code == 0);
  CHECK(contains(ended.out, "2 trials"));
  CHECK(contains(ended.out, "trial 1 failed: "));
  CHECK(contains(ended.out, "allocates at most"));
}

TEST_CASE("another program asks for trials and is told their results", "[cli][search]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string data = write_digits(folder / "digits", 100, 10), asked = (folder / "asked").string();
  const auto answers_of = [&](const std::string& lines, int code, const Arguments& more = {}) {
    write_file(asked, lines);
    const Ended ended = run_command_in_shell(fmt::format("exec \"$@\" < '{}'", asked),
                                             search(data, with({"--ask-tell", "--epochs", "2"}, more)));
    INFO(ended.err);
    CHECK(ended.code == code);
    std::vector<nlohmann::json> answers;
    for (const std::string& line : split(ended.out, '\n')) answers.push_back(nlohmann::json::parse(line));
    return answers;
  };
  const auto answers = answers_of(
      "{\"ask\": 7, \"settings\": {\"lr\": 0.05, \"optimizer\": \"adam\"}}\n\n"
      "{\"ask\": \"x\", \"settings\": {\"lr\": -1}}\n{\"ask\": [1], \"settings\": {\"depth\": 2}}\n",
      0, {"--monitor", "accuracy", "--out", (folder / "study").string()});
  REQUIRE(answers.size() == 3);
  CHECK((answers[0]["tell"] == 7 && answers[0]["epoch"] == 2));
  CHECK(answers[0]["value"] == answers[0]["accuracy"]);
  CHECK((answers[1]["tell"] == "x" && contains(std::string(answers[1]["failed"]), "-1 is not")));
  CHECK((answers[2]["tell"] == nlohmann::json{1} && answers[2].contains("value")));
  CHECK(std::filesystem::exists(folder / "study/best.safetensors"));
  CHECK(answers_of("", 0).empty());
  CHECK(answers_of("{\"ask\": 1}\n", 1).empty());
  CHECK(answers_of("nonsense\n", 1).empty());
  check_refusal(search(data, {"--ask-tell", "--space", "lr={1,2}"}), 2, {"another program chooses the settings"});
}

TEST_CASE("a search that is asked ends when nobody reads its results", "[cli][search]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string data = write_digits(folder / "digits", 100, 10), said = (folder / "said").string();
  const std::string line = fmt::format("printf '{{\"ask\": 1, \"settings\": {{}}}}\\n' | \"$@\" 2>'{}' | :", said);
  static_cast<void>(run_command_in_shell(line, search(data, {"--ask-tell", "--epochs", "1"})));
  CHECK_THAT(content_of(said), test::contains("cannot be written; is its reader gone?"));
}

namespace {

/// A line of shell that gives the command a request and keeps its input open.
std::string with_open_input(const std::filesystem::path& folder, const std::string& request) {
  const std::string pipe = (folder / "requests").string();
  return fmt::format(
      "mkfifo '{0}' && {{ (printf '%s\\n' '{1}'; exec sleep 50) > '{0}' 2>/dev/null & }} && exec \"$@\" < '{0}'", pipe,
      request);
}

}  // namespace

TEST_CASE("a search that is asked ends at a signal while it waits", "[cli][search]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string data = write_digits(folder / "digits", 40, 10);
  const std::string line = with_open_input(folder / ".", R"({"ask": 1, "settings": {"lr": -1}})");
  Process process("/bin/sh", with({"-c", line, "sh", command_path()}, search(data, {"--ask-tell"})));
  REQUIRE(process.wait_for_error_text("trial 0 failed"));
  process.send(SIGINT);
  const Ended ended = process.finish();
  CHECK(ended.code == 130);
  CHECK(contains(ended.out, "\"tell\":1"));
}

TEST_CASE("a wrong request ends a search on several devices", "[cli][search]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string data = write_digits(folder / "digits", 40, 10);
  const Environment two_devices{{"POCL_DEVICES", "pthread pthread"}};
  if (!contains(run_command({"devices"}, two_devices).out, "opencl:1")) {
    WARN("skipped: there are no two devices of PoCL");
    return;
  }
  const Arguments asked{"search",     "mlp:width=8", "--data", data, "--devices", "opencl:0,opencl:1",
                        "--ask-tell", "--batch",     "10"};
  Process process("/bin/sh", with({"-c", with_open_input(folder / ".", "nonsense"), "sh", command_path()}, asked),
                  two_devices);
  const Ended ended = process.finish();
  CHECK(ended.code == 1);
  CHECK(contains(ended.err, "--ask-tell, line 1"));
}

TEST_CASE("a search that makes no sense is refused before any work", "[cli][search]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string data = write_digits(folder / "digits", 100, 10);
  const auto refused = [&](const std::string& space, const std::vector<std::string>& words,
                           const Arguments& more = {}) {
    check_refusal(search(data, with({"--space", space}, more)), 2, words);
  };
  refused("lr=[2,1]", {"the range is empty"});
  refused("lr=log(0,1)", {"begins above 0"});
  refused("learningrate=1", {"learningrate is no option of training and no size of mlp"});
  refused("momentun=[0,0.9]", {"did you mean momentum?"});
  refused("epochs=[1,3]", {"epochs is no option"});
  refused("width=[4,8]", {"width is in the space and also given in mlp:width=8"});
  refused("batch={10,20}", {"batch is in the space and also given as --batch"});
  refused("optimizer={sgd,adan}", {"Did you mean adam?"});
  refused("depth=[0,3]", {"depth=NUMBER from 1"});
  refused("depth=[1,2.5]", {"depth=NUMBER from 1", "2.5"});
  refused("lr=[-1,1]", {"--lr", "-1"});
  refused("momentum=[0,0.9]", {"a grid needs the number of values"}, {"--scheduler", "grid"});
  refused("lr=log(0.1,1)", {"--eta is for --scheduler asha"}, {"--eta", "4"});
  refused("lr=log(0.1,1)", {"after 1 of 1 epoch"}, {"--scheduler", "asha"});
  refused("lr={0.1,1}", {"a grid has a trial for each combination"}, {"--scheduler", "grid", "--trials", "3"});
  check_refusal(search(data, {}), 2, {"--space is missing"});
  refused("lr=log(0.1,1)", {"trials are compared by their validation"}, {"--validate", "none"});
  check_refusal(
      {"search", "mlp", "--data", data, "--space", "lr=log(0.1,1)", "--devices", cheap_device() + "," + cheap_device()},
      2, {" twice"});
  const Ended as_rank =
      run_command(search(data, {"--space", "lr={1,2}"}),
                  {{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "localhost"}, {"MASTER_PORT", "29500"}});
  CHECK((as_rank.code == 2 && contains(as_rank.err, "not as the ranks of one training")));
}

}  // namespace concord::test
