// The command's comparison as files, and the replay of an operator from one.
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/process.hpp"
#include "concord/compare/report/request.hpp"
#include "setting.hpp"

using namespace concord;
using namespace concord::test;

namespace {

Arguments compare_mlp(const Arguments& more) {
  Arguments arguments{"compare",   "mlp", "--devices", cheap_device() + "," + devices().back()->info().id,
                      "--batch",   "2",   "--steps",   "3",
                      "--seconds", "0.01"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

/// A comparison of the training of a program with these arguments.
Ended compare_training(const std::string& program, const Arguments& own, const Arguments& more = {}) {
  Arguments arguments{"compare", program, "--devices", cheap_device() + "," + devices().back()->info().id,
                      "--steps", "2",     "--seconds", "0.01"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  if (!own.empty()) arguments.emplace_back("--");
  arguments.insert(arguments.end(), own.begin(), own.end());
  return run_command(arguments);
}

/// A made counter of a processor that takes ten watts.
class Processor {
 public:
  explicit Processor(std::filesystem::path folder) : folder_(std::move(folder)) {
    write();
    thread_ = std::thread([this] {
      std::unique_lock lock(mutex_);
      while (!stop_.wait_for(lock, std::chrono::milliseconds(2), [this] { return is_stopped_; })) write();
    });
  }
  Processor(const Processor&) = delete;
  Processor& operator=(const Processor&) = delete;
  ~Processor() {
    {
      const std::lock_guard lock(mutex_);
      is_stopped_ = true;
    }
    stop_.notify_all();
    thread_.join();
  }
  /// Since it was made.
  [[nodiscard]] double joules() const {
    constexpr double kWatts = 10;
    return kWatts * std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }

 private:
  // A reader must not find half a number.
  void write() const {
    write_file(folder_ / "next", std::to_string(static_cast<std::uint64_t>(1e6 * joules())));
    std::filesystem::rename(folder_ / "next", folder_ / "energy_uj");
  }

  std::filesystem::path folder_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::mutex mutex_;
  std::condition_variable stop_;
  bool is_stopped_ = false;
  std::thread thread_;
};

}  // namespace

TEST_CASE("compare writes a page and a file of JSON, and prints the table beside them", "[cli]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string html = (folder / "report.html").string(), json = (folder / "report.json").string();
  const Ended ended = run_command(compare_mlp({"--html", html, "--json", json}));
  INFO(ended.err);
  REQUIRE(ended.code == 0);
  CHECK_THAT(ended.out, test::contains("diverging operator") && test::contains("drift of") &&
                            test::contains("from weights moved by one ULP"));
  CHECK_THAT(content_of(html), test::contains("mlp on 2 devices") && test::contains("<h2>Roofline</h2>"));
  const auto report = nlohmann::json::parse(content_of(json));
  CHECK(report.at("agrees") == true);
  REQUIRE(report.at("devices").size() == 2);
  CHECK(report.at("perturbed").size() == 2);
  for (const auto& device : report.at("devices")) {
    CHECK(device.at("ceilings").at("flops_per_second") > 0);
    CHECK_FALSE(device.at("times").empty());
    CHECK_FALSE(device.at("operators").empty());
  }
  CHECK(report.at("devices")[1].at("weight_distances").size() == 3);
}

TEST_CASE("compare and bench tell the energy of a step where a counter does", "[cli]") {
  if (!command_is_there()) return;
  const Device& device = *devices().front();
  if (device.info().kind != DeviceKind::cpu) {
    WARN("skipped: the counters of this test are a CPU's");
    return;
  }
  const TemporaryFolder folder;
  const Arguments compared{"compare", "mlp",     "--devices", device.info().id, "--reference", "float64", "--batch",
                           "2",       "--steps", "1",         "--seconds",      "0.01",        "--json"};
  const Arguments measured{"bench", "mlp", "--device", device.info().id, "--batch", "2", "--seconds", "0.01", "--json"};
  const Environment counters{{"CONCORD_DEBUG", with_debug("powercap=" + folder.path().string())}};
  const auto result = [&](const Arguments& arguments) {
    const Ended ended = run_command(arguments, counters);
    INFO(ended.err);
    REQUIRE(ended.code == 0);
    return nlohmann::json::parse(ended.out);
  };
  CHECK(result(compared).at("devices")[0].at("joules_a_step").is_null());
  CHECK(result(measured).at("train").at("joules").is_null());
  std::filesystem::create_directories(folder / "intel-rapl:0");
  write_file(folder / "intel-rapl:0" / "name", "package-0\n");
  write_file(folder / "intel-rapl:0" / "max_energy_range_uj", "1000000000000\n");
  const Processor processor(folder / "intel-rapl:0");
  const auto told = result(compared).at("devices")[0];
  CHECK(told.at("energy_source") == "all of the processors, RAPL");
  const double a_step = told.at("joules_a_step"), a_run = result(measured).at("train").at("joules");
  for (const double joules : {a_step, a_run}) {
    CHECK(joules > 0);
    CHECK(joules < 0.1 * processor.joules());  // there were tens of steps, and more than steps
  }
}

TEST_CASE("compare --json alone prints, without what only a report needs", "[cli]") {
  if (!command_is_there()) return;
  const Ended ended = run_command(compare_mlp({"--json"}));
  INFO(ended.err);
  REQUIRE(ended.code == 0);
  const auto report = nlohmann::json::parse(ended.out);
  CHECK_FALSE(report.at("devices")[0].contains("ceilings"));
  CHECK_FALSE(report.contains("perturbed"));
}

TEST_CASE("compare checks what a step runs between the ends as often as it is told to", "[cli]") {
  if (!command_is_there()) return;
  const auto checks = [](const std::string& often) {
    const Ended ended = run_command(compare_mlp({"--check", often, "--json"}));
    INFO(ended.err);
    REQUIRE(ended.code == 0);
    const auto report = nlohmann::json::parse(ended.out).at("checks");
    CHECK(report.at("all_operators").at("seconds").size() == 2);
    CHECK(report.at("all_operators").at("in_steps_of_the_slowest_device") > 1);
    return report.at("checked_steps").at("seconds").size();
  };
  CHECK(checks("ends") == 0);  // of three steps
  CHECK(checks("2") == 1);
  CHECK(checks("every") == 2);
  const Ended text = run_command(compare_mlp({"--check", "every"}));
  CHECK_THAT(text.out, test::contains("checked steps: 2, ") && test::contains("of the slowest device without checks"));
  for (const char* const wrong : {"0", "-1", "often"}) {
    const Ended ended = run_command(compare_mlp({"--check", wrong}));
    CHECK(ended.code == 2);
    CHECK_THAT(ended.err, test::contains("--check"));
  }
}

TEST_CASE("a case that compare saved is replayed on each device", "[cli]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string file = (folder / "case.safetensors").string();
  const Ended saved =
      run_command(compare_mlp({"--save-case", file, "--case", "grad/3/matmul/matmul", "--optimizer", "adam"}));
  INFO(saved.err);
  REQUIRE(saved.code == 0);
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    const Ended replayed = run_command({"replay", file, "--device", device->info().id, "--json"});
    INFO(replayed.err);
    REQUIRE(replayed.code == 0);
    const auto report = nlohmann::json::parse(replayed.out);
    CHECK(report.at("node") == "grad/3/matmul/matmul");
    CHECK(report.at("network").at("model") == "mlp");
    CHECK(report.at("diverges") == false);
    REQUIRE(report.at("values").size() == 1);
    CHECK(report.at("values")[0].at("error") <= report.at("values")[0].at("tolerance"));
  }
  const Ended text = run_command({"replay", file, "--device", cheap_device()});
  CHECK(text.code == 0);
  CHECK_THAT(text.out, test::contains("grad/3/matmul/matmul of mlp, batch 2, fp32") && test::contains("tolerance"));
}

TEST_CASE("a case of an update is replayed with the betas and epsilon of its optimizer", "[cli]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string file = (folder / "case.safetensors").string();
  const auto save = [&](const Arguments& more) {
    Arguments arguments = compare_mlp({"--save-case", file, "--case", "update/1.bias/adam", "--optimizer", "adam"});
    arguments.insert(arguments.end(), more.begin(), more.end());
    REQUIRE(run_command(arguments).code == 0);
  };
  const Arguments replay{"replay", file, "--device", cheap_device()};
  save({"--betas", "0.8,0.99", "--eps", "0.001"});
  CHECK(run_command(replay).code == 0);
  save({});
  OperatorCase earlier = read_case(file);
  for (const char* const key : {"beta1", "beta2", "eps"}) CHECK(earlier.network.erase(key) == 1);
  write_case(file, earlier);
  CHECK(run_command(replay).code == 0);
}

TEST_CASE("bench refuses to measure what --first-step leaves out", "[cli]") {
  if (!command_is_there()) return;
  const Arguments first{"bench", "mlp", "--device", cheap_device(), "--batch", "2", "--first-step"};
  for (const Arguments& more : {Arguments{"--seconds", "0.01"}, Arguments{"--trace"}}) {
    Arguments arguments = first;
    arguments.insert(arguments.end(), more.begin(), more.end());
    check_refusal(arguments, 2, {"--first-step", more[0]});
  }
}

TEST_CASE("compare and replay refuse what they cannot do", "[cli]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string file = (folder / "file").string();
  const auto refused = [](const Arguments& arguments, int code, const std::string& words) {
    const Ended ended = run_command(arguments);
    CHECK(ended.code == code);
    CHECK_THAT(ended.err, test::contains(words));
  };
  refused(compare_mlp({"--save-case", file, "--case", "no/such"}), 2, "there are 1/");
  refused(compare_mlp({"--case", "1/matmul"}), 2, "--save-case");
  for (const char* const option : {"--html", "--json", "--save-case", "--trace"}) {
    const Ended ended = run_command(compare_mlp({option, (folder / "missing" / "file").string()}));
    CHECK(ended.code == 1);
    CHECK_THAT(ended.err, test::contains("cannot be written: there is no folder " + (folder / "missing").string()));
    CHECK(ended.out.empty());  // before the training
  }
  refused({"compare", "all", "--devices", cheap_device(), "--html", file}, 2, "need one network");
  refused(compare_mlp({"--permit", "missing=*"}), 2, "--permit needs --weights");
  std::string rows = "a,b\n";
  for (int i = 0; i < 40; ++i) rows += std::to_string(i) + ".5," + std::to_string(3 * i) + ".5\n";
  write_file(folder / "t.csv", rows);
  refused(compare_mlp({"--data", "csv:" + (folder / "t.csv").string() + ",target=b", "--save-case", file}), 2,
          "with which it could not be replayed");
  refused(compare_mlp({"--html", file, "--json", (folder / "." / "file").string()}), 2,
          "--html and --json would both write");
  const Ended nothing = run_command(compare_mlp({"--save-case", file}));
  CHECK(nothing.code == 0);
  CHECK_THAT(nothing.err, test::contains("no operator diverged"));
  CHECK_FALSE(std::filesystem::exists(file));
  write_file(file, "no case");
  refused({"replay", file, "--device", cheap_device()}, 1, file);
  REQUIRE(run_command(compare_mlp({"--save-case", file, "--case", "1/matmul"})).code == 0);
  const OperatorCase right = read_case(file);
  for (const auto& [key, text] : {std::pair{"model", "no-such-net"},
                                  {"batch", "none"},
                                  {"precision", "fp7"},
                                  {"optimizer", "luck"},
                                  {"sample", "3xy"}}) {
    OperatorCase wrong = right;
    wrong.network[key] = text;
    write_case(file, wrong);
    refused({"replay", file, "--device", cheap_device()}, 1, "concord: " + file + ": ");
  }
}

TEST_CASE("the training of a program is compared instead of run", "[cli]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string data = write_digits(folder / "data", 40, 10), weights = (folder / "net.safetensors").string();
  const std::string json = (folder / "result.json").string(), page = (folder / "page.html").string();
  const Arguments train{"train", "mlp",         "--data", data,     "--device", cheap_device(), "--batch",
                        "5",     "--clip-norm", "1",      "--seed", "7",        "--out",        weights};
  const Ended ended = compare_training(command_path(), train, {"--json", json, "--html", page});
  INFO(ended.err);
  CHECK(ended.code == 0);
  CHECK_THAT(ended.out, test::contains("mlp: 2 steps, batch 5, seed 7") && test::contains(devices().back()->info().id));
  CHECK_FALSE(std::filesystem::exists(weights));  // it ended where the training would have begun
  const auto report = nlohmann::json::parse(content_of(json));
  CHECK(report.at("agrees") == true);
  CHECK(report.at("devices").size() == 2);
  CHECK_THAT(content_of(page), test::contains("The devices agree"));

  const Ended printed = compare_training(command_path(), train, {"--json"});
  CHECK(nlohmann::json::parse(printed.out).at("agrees") == true);
  CHECK_THAT(printed.err, test::contains("samples"));  // what the program says itself

  std::filesystem::remove(json);  // of a program that changes its folder
  Arguments elsewhere{"-c", "cd / && exec \"$0\" \"$@\"", command_path()};
  elsewhere.insert(elsewhere.end(), train.begin(), train.end());
  CHECK(compare_training("/bin/sh", elsewhere, {"--json", std::filesystem::relative(json).string()}).code == 0);
  CHECK(std::filesystem::exists(json));
}

TEST_CASE("a program without a training to compare is told", "[cli]") {
  if (!command_is_there()) return;
  const auto refusal = [&](const std::string& program, const Arguments& own, const Arguments& more = {}) {
    const Ended ended = compare_training(program, own, more);
    CHECK(ended.code != 0);
    return ended.err;
  };
  CHECK_THAT(refusal("/bin/sh", {"-c", "exit 3"}), test::contains("/bin/sh compared nothing and ended: exit code 3"));
  CHECK_THAT(refusal("/bin/sh", {"-c", "kill -9 $$"}), test::contains("/bin/sh compared nothing and ended: Killed"));
  // What it started may hold the channel longer than it lives.
  const auto start = std::chrono::steady_clock::now();
  CHECK_THAT(refusal("/bin/sh", {"-c", "sleep 60 >/dev/null 2>&1 & kill -9 $$"}), test::contains("ended: Killed"));
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(30));
  CHECK_THAT(refusal("./no-such-program", {}), test::contains("./no-such-program does not start: No such file"));
  CHECK_THAT(refusal("/bin/sh", {}, {"--batch", "3"}), test::contains("--batch applies only to the networks"));
  CHECK_THAT(refusal("mlp", {"more"}), test::contains("-- more: arguments need a program"));
  const Arguments train{"train", "mlp", "--data", "random", "--device", cheap_device()};
  const Ended asked = run_command(train, {{"CONCORD_COMPARE", "yes"}});
  CHECK(asked.code == 2);
  CHECK_THAT(asked.err, test::contains("only `concord compare PROGRAM` may set it"));
}

TEST_CASE("a program that was compared and that nobody ends does not train", "[cli]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string data = write_digits(folder / "data", 40, 10), weights = (folder / "net.safetensors").string();
  const CompareRequest request{.name = "mlp", .devices = {cheap_device()}, .options = {.steps = 1, .seconds = 0.001}};
  const Ended ended = run_command({"train", "mlp", "--data", data, "--device", cheap_device(), "--out", weights},
                                  {{CompareRequest::kVariable, request.text()}});
  CHECK(ended.code == 1);
  CHECK_THAT(ended.err, test::contains("the training was compared on devices instead of run"));
  CHECK_FALSE(std::filesystem::exists(weights));
}

TEST_CASE("a program's comparison that fails is told", "[cli]") {
  if (!command_is_there()) return;
  const Ended nowhere = run_command({"compare", command_path(), "--devices", "opencl:nowhere", "--", "train", "mlp",
                                     "--data", "random", "--device", cheap_device()});
  CHECK(nowhere.code == 1);
  CHECK_THAT(nowhere.err, test::contains("concord: no device matches \"opencl:nowhere\""));
}
