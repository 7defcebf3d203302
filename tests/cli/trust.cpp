// What makes a training believable: its timeline, the profile of a step, the search for values that are not finite, and
// the doctor.
#include <nlohmann/json.hpp>

#include "cli/process.hpp"
#include "test_library.hpp"
#include "timeline.hpp"

using namespace concord;
using namespace concord::test;

namespace {

const Environment kNoDrivers{
    {"OCL_ICD_VENDORS", "/nonexistent"}, {"OCL_ICD_FILENAMES", ""}, {"OPENCL_VENDOR_PATH", "/nonexistent"}};

bool has_cpu() { return cheap_device() == "cpu"; }

nlohmann::json parsed(const Ended& ended) {
  INFO(ended.err);
  REQUIRE(!ended.out.empty());
  return nlohmann::json::parse(ended.out);
}

/// Whether the doctor's report has such a finding with these words.
bool has_finding(const nlohmann::json& report, const std::string& weight, const std::string& words) {
  return std::ranges::any_of(report.at("findings"), [&](const nlohmann::json& finding) {
    return finding.at("weight") == weight && contains(finding.at("text").get<std::string>(), words);
  });
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
    CHECK(tracks.contains(device + " kernels"));
    CHECK(tracks.contains(device + " copies"));
    CHECK(has_span(tracks, "host", phase));
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
    CHECK(tracks.contains(id + " copies"));
    CHECK(has_span(tracks, "host", "measure product"));
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

TEST_CASE("the doctor finds drivers that are missing or broken", "[cli]") {
  if (!command_is_there()) return;
  if (Device::list().empty() || !has_cpu()) {
    WARN("skipped: there is no CPU device");
    return;
  }
  Environment environment = kNoDrivers;
  const Ended nothing = run_command({"doctor", "--device", "opencl", "--json"}, environment);
  CHECK(nothing.code == 1);
  const auto report = parsed(nothing);
  CHECK(report.at("can_train") == false);
  CHECK(has_finding(report, "warning", "no OpenCL driver is installed"));
  CHECK(has_finding(report, "obstacle", "no device matches \"opencl\""));
  CHECK_THAT(nothing.err, test::contains("concord: you cannot train") && test::contains("pocl-opencl-icd"));

  const TemporaryFolder folder;
  write_file(folder / "broken.icd", "libno-such-driver.so.1\n");
  write_file(folder / "empty.icd", "");
  write_file(folder / "idle.icd", "libm.so.6\n");  // loads, and is no driver
  write_file(folder / "cache", "a file where a folder should be");
  environment["OCL_ICD_VENDORS"] = folder.path().string();
  environment["CONCORD_CACHE_DIR"] = (folder / "cache").string();
  const Ended broken = run_command({"doctor", "--device", "opencl", "--json"}, environment);
  CHECK(broken.code == 1);
  const auto found = parsed(broken);
  CHECK(has_finding(found, "warning", "the driver libno-such-driver.so.1 does not load: libno-such-driver.so.1"));
  CHECK(has_finding(found, "warning", "empty.icd names no library"));
  CHECK(has_finding(found, "warning", "OpenCL's drivers load, and give no device"));
  CHECK(has_finding(found, "warning", "compiled kernels cannot be kept in " + (folder / "cache").string()));
}

TEST_CASE("the doctor outlives a driver that ends programs, and names it", "[cli]") {
  if (!command_is_there()) return;
  if (!has_cpu()) {
    WARN("skipped: there is no CPU device");
    return;
  }
  const TemporaryFolder folder;
  write_file(folder / "fatal.icd", test_library(CONCORD_FATAL_DRIVER) + "\n");
  Environment environment = kNoDrivers;
  environment["OCL_ICD_VENDORS"] = folder.path().string();
  REQUIRE(run_command({"devices"}, environment).code > 2);  // a signal's
  const std::string ends = "ends every program that asks OpenCL for devices: Aborted, after \"nothing works here\"";
  const Ended on_cpu = run_command({"doctor", "--device", "cpu", "--json"}, environment);
  CHECK(on_cpu.code == 0);
  CHECK(has_finding(parsed(on_cpu), "warning", ends));
  const Ended on_any = run_command({"doctor", "--device", "opencl", "--json"}, environment);
  CHECK(on_any.code == 1);
  CHECK(has_finding(parsed(on_any), "obstacle", ends));
  CHECK(has_finding(parsed(on_any), "obstacle", "no device matches \"opencl\""));

  // The loader then finds the drivers that are left.
  const std::filesystem::path others = "/etc/OpenCL/vendors/pocl.icd";
  if (!std::filesystem::exists(others)) return;
  std::filesystem::copy(others, folder / "pocl.icd");
  const Ended beside = run_command({"doctor", "--device", "opencl:nowhere", "--json"}, environment);
  CHECK(has_finding(parsed(beside), "obstacle", ends));
  CHECK(has_finding(parsed(beside), "fine", "opencl:0"));
}

TEST_CASE("the doctor names a platform that gives no device", "[cli]") {
  if (!command_is_there()) return;
  bool has_pocl = false, has_others = false;
  for (const DeviceInfo& info : Device::list()) {
    const bool is_pocl = info.platform.find("PoCL") != std::string::npos;
    has_pocl |= is_pocl;
    has_others |= info.backend == "opencl" && !is_pocl;
  }
  if (!has_pocl || has_others) {
    WARN("skipped: it takes PoCL, and no other OpenCL device");
    return;
  }
  const Ended ended = run_command({"doctor", "--device", "opencl", "--json"}, {{"POCL_CACHE_DIR", "/dev/null/none"}});
  CHECK(ended.code == 1);
  CHECK(has_finding(parsed(ended), "warning", "OpenCL's platform \"Portable Computing Language\" gives no device"));
}

TEST_CASE("the doctor checks and measures a device", "[cli]") {
  if (!command_is_there()) return;
  if (!has_cpu()) {
    WARN("skipped: there is no CPU device");
    return;
  }
  const Ended ended = run_command({"doctor"}, kNoDrivers);  // the CPU is left, with nothing to compare it with
  INFO(ended.err);
  CHECK(ended.code == 0);
  CHECK_THAT(ended.out, test::contains("no OpenCL driver is installed") && test::contains("taken: cpu") &&
                            test::contains("oneDNN") && test::contains("conv2d_backward_weights") &&
                            test::contains("GB/s of memory") && test::contains("a launch costs"));
  CHECK_THAT(ended.out, test::contains("\nYou can train on cpu"));
  const std::string last = ended.out.substr(ended.out.rfind('\n', ended.out.size() - 2) + 1);
  CHECK_THAT(last, test::contains("You can train"));
}
