// What makes a training believable: its timeline, the profile of a step, and the search for values that are not finite.
#include <nlohmann/json.hpp>

#include "cli/process.hpp"
#include "driver_traits.hpp"
#include "timeline.hpp"

using namespace concord;
using namespace concord::test;

namespace {

nlohmann::json parsed(const Ended& ended) {
  INFO(ended.err);
  REQUIRE(!ended.out.empty());
  return nlohmann::json::parse(ended.out);
}

}  // namespace

TEST_CASE("every command that runs programs writes a timeline", "[cli]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string data = write_digits(folder / "data", 40, 10), device = cheap_device();
  const std::string weights = (folder / "net.safetensors").string(), trace = (folder / "trace.json").string();
  const auto traced = [&](Arguments arguments, const std::string& phase) {
    INFO(arguments.front());
    arguments.insert(arguments.end(), {"--trace", trace});
    const Ended ended = run_command(arguments);
    INFO(ended.err);
    REQUIRE(ended.code == 0);
    const Tracks tracks = read_trace(trace);
    CHECK(has_span(tracks, "host", phase));
    if (!has_times(device)) return;
    CHECK(tracks.contains(device + " kernels"));
    CHECK(tracks.contains(device + " copies"));
  };
  traced({"train", "mlp", "--data", data, "--device", device, "--epochs", "1", "--out", weights}, "validation");
  CHECK(has_span(read_trace(trace), "host", "enqueue step"));
  traced({"evaluate", "mlp", "--data", data, "--device", device, "--weights", weights}, "evaluate");
  traced({"predict", "mlp", "--data", data, "--device", device, "--weights", weights}, "read outputs");
  traced({"bench", "mlp", "--device", device, "--batch", "2", "--seconds", "0.01"}, "enqueue step");
  traced({"profile", "mlp", "--device", device, "--batch", "2"}, "enqueue step");
  const std::string file = (folder / "case.safetensors").string();
  traced({"compare", "mlp", "--devices", device, "--batch", "2", "--steps", "1", "--seconds", "0.01", "--reference",
          "float64", "--save-case", file, "--case", "grad/3/matmul/matmul"},
         "enqueue step");
  traced({"replay", file, "--device", device}, "compile");
  traced({"doctor", "--device", device}, "enqueue step");
}

TEST_CASE("tune writes a timeline", "[cli]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string trace = (folder / "trace.json").string(), table = (folder / "table.json").string();
  for (const DevicePtr& device : devices()) {
    if (device->info().backend != "opencl") continue;
    const std::string id = device->info().id;
    const Ended ended = run_command({"tune", "mlp", "--batch", "2", "--device", id, "--seconds", "0.001", "--again",
                                     "--out", table, "--trace", trace});
    INFO(ended.err);
    REQUIRE(ended.code == 0);
    const Tracks tracks = read_trace(trace);
    if (has_times(device)) CHECK(tracks.contains(id + " copies"));
    CHECK(has_span(tracks, "host", "measure matrix multiplication"));
  }
}

TEST_CASE("a timeline that cannot be written is told before the training", "[cli]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string data = write_digits(folder / "data", 20, 10), weights = (folder / "net.safetensors").string();
  const auto train = [&](const std::string& trace) {
    return Arguments{"train",    "mlp", "--data", data,    "--device", cheap_device(),
                     "--epochs", "1",   "--out",  weights, "--trace",  trace};
  };
  std::vector<std::string> places{(folder / "missing" / "trace.json").string(), folder.path().string()};
  if (std::filesystem::exists("/dev/full")) places.emplace_back("/dev/full");
  for (const std::string& place : places) {
    INFO(place);
    const Ended ended = run_command(train(place));
    CHECK(ended.code == 1);
    CHECK_THAT(ended.err, test::contains(place) && !test::contains("samples"));
    CHECK_FALSE(std::filesystem::exists(weights));
  }
  const std::string trace = (folder / "trace.json").string();
  const Ended full = run_command_in_shell("trap '' XFSZ; ulimit -f 0; exec \"$@\"", train(trace));
  CHECK(full.code == 1);
  CHECK_THAT(full.err, test::contains("cannot write " + trace) && !test::contains("samples"));
  CHECK_FALSE(std::filesystem::exists(trace));
}

TEST_CASE("a training that fails leaves its timeline", "[cli]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string data = write_digits(folder / "data", 40, 10), trace = (folder / "trace.json").string();
  const Ended ended = run_command(
      {"train", "mlp", "--data", data, "--device", cheap_device(), "--batch", "10", "--lr", "1e30", "--trace", trace});
  CHECK(ended.code == 1);
  CHECK(has_span(read_trace(trace), "host", "enqueue step"));
}

TEST_CASE("train --nan-trace names the step, the node and its inputs", "[cli]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string data = write_digits(folder / "data", 40, 10);
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    const Arguments train{"train",           "mlp",     "--data", data,         "--device",
                          device->info().id, "--batch", "10",     "--nan-trace"};
    Arguments too_fast = train, half = train;
    too_fast.insert(too_fast.end(), {"--lr", "1e30"});
    const Ended ended = run_command(too_fast);
    CHECK(ended.code == 1);
    CHECK_THAT(ended.err, test::contains("step 2 (epoch 1, batch 2) has a value that is not finite") &&
                              test::contains("matmul") && test::contains("computed from") &&
                              test::contains("elements)") && test::contains(" in ["));
    half.insert(half.end(), {"--precision", "fp16"});
    CHECK(run_command(half).code == 2);
  }
}

TEST_CASE("profile sums operators, and lists launches", "[cli]") {
  if (!command_is_there()) return;
  const auto profile = [](const Arguments& more) {
    Arguments arguments{"profile", "mlp", "--device", cheap_device(), "--batch", "4"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Ended ended = run_command(arguments);
    INFO(ended.err);
    REQUIRE(ended.code == 0);
    return ended;
  };
  const auto kinds = parsed(profile({"--json"})), launches = parsed(profile({"--json", "--detail"}));
  for (const auto& report : {kinds, launches}) {
    CHECK(report.at("what") == "training step");
    CHECK(report.at("ceilings").at("bytes_per_second") > 0);
    double share = 0, microseconds = 0;
    for (const auto& row : report.at("operators")) {
      CHECK(row.at("microseconds") > 0);
      CHECK(row.at("roofline") >= 0);
      share += row.at("share").get<double>();
      microseconds += row.at("microseconds").get<double>();
    }
    CHECK(share == Approx(1));
    CHECK(report.at("total").at("microseconds").get<double>() == Approx(microseconds));
    CHECK(std::ranges::is_sorted(report.at("operators"), std::ranges::greater{},
                                 [](const nlohmann::json& row) { return row.at("microseconds").get<double>(); }));
  }
  CHECK(kinds.at("total").at("count") == launches.at("operators").size());
  CHECK(kinds.at("operators").size() < launches.at("operators").size());
  CHECK_FALSE(kinds.at("operators")[0].contains("shapes"));
  CHECK_THAT(launches.at("operators")[0].at("shapes").get<std::string>(), test::contains(" -> f32 ["));
  const std::string table = profile({"--inference", "--detail"}).out;
  CHECK_THAT(table, test::contains("inference of mlp, batch 4") && test::contains("roofline") &&
                        test::contains("shapes") && test::contains("matmul") && test::contains("\ntotal "));
}
