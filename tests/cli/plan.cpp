// concord plan as a user runs it: from a trace of bench or train to a table.
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/process.hpp"

namespace concord::test {
namespace {

/// A trace of LeNet's training step, of `bench`.
std::string record(const TemporaryFolder& folder) {
  const std::string file = (folder / "run.json").string();
  const Ended ended =
      run_command({"bench", "lenet", "--batch", "4", "--device", cheap_device(), "--seconds", "0.05", "--trace", file});
  INFO(ended.err);
  REQUIRE(ended.code == 0);
  return file;
}

Arguments plan(const std::string& trace, const Arguments& more) {
  return with({"plan", "lenet", "--trace", trace}, more);
}

}  // namespace

TEST_CASE("plan predicts the step of many ranks from a trace of one", "[cli][plan]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string trace = record(folder);
  const Arguments arguments = plan(trace, {"--ranks", "4", "--link", "latency=20us,bandwidth=1GB/s", "--step-ms", "10",
                                           "--deviation", "0", "--no-overlap", "--json"});
  const Ended ended = run_command(arguments);
  INFO(ended.err);
  REQUIRE(ended.code == 0);
  const auto report = nlohmann::json::parse(ended.out);
  CHECK(report["gradient_bytes"] == 431'080 * 4);
  CHECK(report["gradients"].size() == 8);
  CHECK(report["step_s"].get<double>() == Approx(10e-3));
  const auto& predictions = report["predictions"];
  REQUIRE(predictions.size() == 3);
  CHECK(predictions[0]["efficiency"] == 1);
  for (std::size_t i = 1; i < 3; ++i) {
    // One bucket, after the backward pass: 2 · (L + (n − 1) · S/n · G).
    const double ranks = predictions[i]["ranks"], part = 431'080 * 4 / ranks;
    CHECK(ranks == (i == 1 ? 2 : 4));
    const double exchange = 2 * (20e-6 + (ranks - 1) * part * 1e-9);
    CHECK(predictions[i]["exchange_s"].get<double>() == Approx(exchange).epsilon(1e-3));
    CHECK(predictions[i]["step_s"].get<double>() == Approx(10e-3 + exchange).epsilon(1e-3));
    CHECK(predictions[i]["limit"] == "bandwidth between machines");
  }
  const Ended slowed =
      run_command(plan(trace, {"--ranks", "4", "--link", "latency=20us,bandwidth=1GB/s", "--step-ms", "10",
                               "--deviation", "0", "--bucket", "64KiB", "--known-step", "2:11", "--json"}));
  INFO(slowed.err);
  REQUIRE(slowed.code == 0);
  const auto of_slowed = nlohmann::json::parse(slowed.out);
  CHECK(of_slowed["predictions"][1]["step_s"].get<double>() == Approx(11e-3));
  CHECK(of_slowed["slowdown"].get<double>() > 0);
  const Ended table = run_command(Arguments(arguments.begin(), arguments.end() - 1));
  CHECK_THAT(table.out, test::contains("efficiency") && test::contains("best buckets for 4 ranks"));
}

TEST_CASE("bad input of plan is refused with a sentence", "[cli][plan]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string trace = record(folder), link = "latency=20us,bandwidth=1GB/s";
  check_refusal({"plan", "lenet"}, 2, {"plan needs a network, --trace and --ranks"});
  check_refusal(plan(trace, {"--ranks", "4"}), 2, {"--link is needed", "latency=20us,bandwidth=50GB/s"});
  check_refusal(plan(trace, {"--ranks", "4", "--link", "latency=1us"}), 2, {"bandwidth is missing"});
  check_refusal(plan(trace, {"--ranks", "4", "--link", "no-such-file.csv"}), 1, {"no-such-file.csv"});
  check_refusal(plan(trace, {"--ranks", "4", "--link", trace}), 1, {trace, "bytes,ranks,seconds"});
  check_refusal(plan(trace, {"--ranks", "0", "--link", link}), 2, {"--ranks"});
  check_refusal(plan(trace, {"--ranks", "12", "--machine", "8", "--link", link, "--inside", link}), 2,
                {"12 ranks do not fill machines of 8"});
  check_refusal(plan(trace, {"--ranks", "16", "--machine", "8", "--link", link}), 2, {"--inside is needed"});
  check_refusal(plan((folder / "none.json").string(), {"--ranks", "4", "--link", link}), 1, {"none.json"});
  check_refusal({"plan", "resnet20", "--trace", trace, "--ranks", "4", "--link", link}, 2,
                {"run.json is the trace of another network: resnet20 has no parameter"});
  std::ofstream(folder / "empty.json") << R"({"traceEvents":[]})";
  check_refusal(plan((folder / "empty.json").string(), {"--ranks", "4", "--link", link}), 1,
                {"no training step", "concord train NET --trace"});
  check_refusal(plan(trace, {"--ranks", "4", "--link", link, "--inside", link}), 2, {"--machine"});
  const auto known = [&](const std::string& step) {
    return plan(trace, {"--ranks", "4", "--link", link, "--step-ms", "10", "--known-step", step});
  };
  for (const char* wrong : {"2", "1:12", "2:", "2:-1", "two:12", ":12"}) {
    check_refusal(known(wrong), 2, {std::string("--known-step ") + wrong, "as in 2:19.5"});
  }
  check_refusal(known("2:1e6"), 2, {"do not explain a step of 1e+06 ms on 2 ranks"});
  check_refusal(with(known("2:12"), {"--no-overlap"}), 2, {"--known-step", "--no-overlap"});
  for (const Arguments& ignored : {Arguments{"--ranks", "4"}, Arguments{"--trace", trace}, Arguments{"--json"}}) {
    check_refusal(with({"plan", "--measure", (folder / "link.csv").string()}, ignored), 2,
                  {ignored[0] + ": --measure only times exchanges"});
  }
  check_refusal({"plan", "--measure", (folder / "link.csv").string()}, 2, {"--measure needs at least two ranks"});
}

TEST_CASE("plan measures the link between ranks", "[cli][plan][collective]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string trace = record(folder), link = (folder / "link.csv").string();
  constexpr int kFirstPort = 30'000, kPorts = 20'000;
  const auto rank = [&](int number) {
    return Environment{
        {"RANK", std::to_string(number)},   {"WORLD_SIZE", "2"},
        {"MASTER_ADDR", "127.0.0.1"},       {"MASTER_PORT", std::to_string(kFirstPort + ::getpid() % kPorts)},
        {"CONCORD_DEVICE", cheap_device()}, {"CONCORD_EXCHANGE", "host"},
        {"CONCORD_DEADLINE", "60"}};
  };
  Process other(command_path(), {"plan", "--measure", link}, rank(1));
  const Ended ended = run_command({"plan", "--measure", link}, rank(0));
  INFO(ended.err);
  CHECK(ended.code == 0);
  CHECK(other.finish().code == 0);
  CHECK_THAT(content_of(link), test::contains("bytes,ranks,seconds,transport\n65536,2,") && test::contains(",host"));
  const Ended planned = run_command(plan(trace, {"--ranks", "8", "--link", link}));
  INFO(planned.err);
  CHECK(planned.code == 0);
  CHECK_THAT(planned.out, test::contains("fitted, within"));
}

}  // namespace concord::test
