// concord doctor as a user meets it: what it finds with drivers and devices as they are and as they should not be, and
// the line that it ends with.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/process.hpp"
#include "concord/device/kernel_alternatives.hpp"
#include "setting.hpp"
#include "test_library.hpp"

using namespace concord;
using namespace concord::test;

namespace {

const Environment kNoDrivers{
    {"OCL_ICD_VENDORS", "/nonexistent"}, {"OCL_ICD_FILENAMES", ""}, {"OPENCL_VENDOR_PATH", "/nonexistent"}};

bool has_cpu() { return cheap_device() == "cpu"; }

/// With this driver alone, named by a file in `folder`.
Environment with_driver(const TemporaryFolder& folder, const char* library) {
  write_file(folder / "driver.icd", test_library(library) + "\n");
  Environment environment = kNoDrivers;
  environment["OCL_ICD_VENDORS"] = folder.path().string();
  return environment;
}

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

std::string last_line(const std::string& text) {
  REQUIRE(text.ends_with('\n'));
  const std::size_t before = text.size() < 2 ? std::string::npos : text.rfind('\n', text.size() - 2);
  return text.substr(before == std::string::npos ? 0 : before + 1);
}

/// The verdict is the last line there is. Compilers of drivers write to standard error, too.
void check_ends_well(const Ended& ended) {
  CHECK(ended.code == 0);
  CHECK(ended.err.empty());
  CHECK_THAT(last_line(ended.out),
             Catch::Matchers::StartsWith("You can train on ") && Catch::Matchers::EndsWith(".\n"));
}
void check_ends_badly(const Ended& ended, const std::string& why) {
  CHECK(ended.code == 1);
  const std::string last = last_line(ended.err);
  CHECK_THAT(last, Catch::Matchers::StartsWith("concord: you cannot train on "));
  CHECK_THAT(last, Catch::Matchers::EndsWith(" above for more.\n"));
  CHECK_THAT(last, test::contains(": " + why + "; "));
  CHECK_THAT(ended.out, test::contains("  obstacle  ") && !test::contains("cannot train"));
}

/// A PoCL device; null, and the test reported as skipped, where there is none.
DevicePtr pocl() {
  for (const DevicePtr& device : devices()) {
    if (device->info().platform.starts_with("PoCL")) return device;
  }
  WARN("skipped: it takes PoCL");
  return nullptr;
}

}  // namespace

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
  CHECK(has_finding(report, "obstacle", "pocl-opencl-icd"));
  CHECK(nothing.err == "concord: " + report.at("verdict").get<std::string>() + "\n");
  check_ends_badly(run_command({"doctor", "--device", "opencl"}, environment), "no device, or more than one, matches");

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
  CHECK(has_finding(found, "warning", "The OpenCL drivers load, but have no device"));
  CHECK(has_finding(found, "warning", "compiled kernels cannot be stored in " + (folder / "cache").string()));
  environment["OCL_ICD_FILENAMES"] = "/nonexistent/gone.icd";
  CHECK(has_finding(parsed(run_command({"doctor", "--device", "opencl", "--json"}, environment)), "warning",
                    "OCL_ICD_FILENAMES names /nonexistent/gone.icd, which does not exist"));
}

TEST_CASE("the doctor outlives a driver that ends programs, and names it", "[cli]") {
  if (!command_is_there()) return;
  if (!has_cpu()) {
    WARN("skipped: there is no CPU device");
    return;
  }
  const TemporaryFolder folder;
  Environment environment = with_driver(folder, CONCORD_FATAL_DRIVER);
  REQUIRE(run_command({"devices"}, environment).code > 2);  // a signal's
  const std::string ends = "ends every program that asks OpenCL for devices: Aborted, after \"nothing works here\"";
  const Ended on_cpu = run_command({"doctor", "--device", "cpu", "--json"}, environment);
  CHECK(on_cpu.code == 0);
  CHECK(has_finding(parsed(on_cpu), "warning", ends));
  const Ended on_any = run_command({"doctor", "--device", "opencl", "--json"}, environment);
  CHECK(on_any.code == 1);
  CHECK(has_finding(parsed(on_any), "obstacle", ends));
  CHECK(has_finding(parsed(on_any), "obstacle", "no device matches \"opencl\""));
  const std::string why = "an OpenCL driver ends every program that asks for devices";
  check_ends_badly(run_command({"doctor", "--device", "opencl"}, environment), why);
  environment["TMPDIR"] = "/nonexistent";  // no place for those that are left
  check_ends_badly(run_command({"doctor", "--device", "opencl"}, environment), why);
  environment.erase("TMPDIR");

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
  CHECK(has_finding(parsed(ended), "warning", "OpenCL platform \"Portable Computing Language\" has no device"));
}

TEST_CASE("the doctor tells which devices are left out and why, and one that does not open", "[cli]") {
#ifdef CONCORD_POOR_DRIVER
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const Environment environment = with_driver(folder, CONCORD_POOR_DRIVER);
  const Ended ended = run_command({"doctor", "--device", "opencl", "--json"}, environment);
  const auto report = parsed(ended);
  const auto left_out = [&](const std::string& words) {
    return std::ranges::count_if(report.at("findings"), [&](const nlohmann::json& finding) {
      return finding.value("trouble", "") == "A device that is left out" && finding.at("weight") == "warning" &&
             contains(finding.at("text").get<std::string>(), words);
    });
  };
  CHECK(left_out("\"Old One\" is skipped: its driver 0.1 has \"OpenCL 1.1 poor\", but OpenCL 1.2 is needed: install a "
                 "newer driver") == 1);
  CHECK(left_out("\"Mute One\" is skipped: its driver has no compiler") == 1);
  CHECK(left_out("\"Switched Off\" is skipped: it is not available") == 1);
  CHECK(left_out("") == 3);
  CHECK_FALSE(std::ranges::any_of(report.at("findings"), [](const nlohmann::json& finding) {
    return finding.value("trouble", "") == "A warning of the library";  // the same once more
  }));
  CHECK(has_finding(report, "fine", "opencl:0  Stuck One"));
  CHECK(has_finding(report, "obstacle", "CL_DEVICE_NOT_AVAILABLE"));
  check_ends_badly(run_command({"doctor", "--device", "opencl"}, environment), "it does not open");
#else
  WARN("skipped: this build has no OpenCL");
#endif
}

TEST_CASE("the doctor that is called wrongly says so in one line", "[cli]") {
  if (!command_is_there()) return;
  const DevicePtr device = pocl();
  if (!device) return;
  for (const Environment& environment :
       {Environment{{"CONCORD_DEBUG", "nonsense"}}, Environment{{"CONCORD_DEBUG", "kernels=nonsense"}}}) {
    const Ended ended = run_command({"doctor", "--device", device->info().id}, environment);
    CHECK(ended.code == 2);
    CHECK_THAT(ended.err, Catch::Matchers::StartsWith("concord: " + environment.begin()->first));
    CHECK(ended.err == last_line(ended.err));
  }
}

TEST_CASE("the doctor checks and measures the CPU", "[cli]") {
  if (!command_is_there()) return;
  if (!has_cpu()) {
    WARN("skipped: there is no CPU device");
    return;
  }
  const Ended ended = run_command({"doctor"}, kNoDrivers);  // the CPU is left, with nothing to compare it with
  check_ends_well(ended);
  CHECK_THAT(ended.out, test::contains("no OpenCL driver is installed") && test::contains("taken: cpu") &&
                            test::contains("oneDNN") && test::contains("conv2d_backward_weights") &&
                            test::contains("GB/s of memory") && test::contains("launch overhead"));
  CHECK_THAT(last_line(ended.out), test::contains("on cpu (") && test::contains("see the warnings above"));
}

TEST_CASE("the doctor runs every way to compute of an OpenCL device, and measures it", "[cli]") {
  if (!command_is_there()) return;
  const DevicePtr device = pocl();
  if (!device) return;
  const TemporaryFolder cache;  // for its denylist; PoCL keeps the kernels itself
  const Environment environment{{"CONCORD_CACHE_DIR", cache.path().string()}, {"CONCORD_DRIVER_CACHE", "1"}};
  const Ended ended = run_command({"doctor", "--device", device->info().id}, environment);
  INFO(ended.out << ended.err);
  check_ends_well(ended);
  CHECK_THAT(last_line(ended.out), test::contains(device->info().id + " (" + device->info().name + ")"));
  const std::vector<KernelAlternative> alternatives = device->alternatives()->list();
  REQUIRE(!alternatives.empty());
  for (const KernelAlternative& alternative : alternatives) {
    CHECK_THAT(ended.out, test::contains("\n  fine      " + alternative.name + ": correct\n") ||
                              test::contains("\n  fine      " + alternative.name + ": no check applies"));
  }
  CHECK_THAT(ended.out, test::contains("\n  fine      product tiled: correct\n"));
  for (const char* const op : {"matmul", "conv2d_backward_data", "recurrent_backward", "attention_backward_query",
                               "batch_norm_backward", "ctc"}) {
    CHECK_THAT(ended.out, test::contains(op));
  }
  CHECK_THAT(ended.out, test::contains("GFLOP/s in a matrix multiplication") && test::contains("launch overhead") &&
                            test::contains("copies: to the device"));
  CHECK_THAT(ended.out, !test::contains("  obstacle  "));
  CHECK_FALSE(std::filesystem::exists(cache / "quirks"));
}

TEST_CASE("the doctor ends with a verdict where kernels of a device do not build", "[cli]") {
  if (!command_is_there()) return;
  const DevicePtr device = pocl();
  if (!device) return;
  const TemporaryFolder folder;
  std::filesystem::copy(folder_of_kernels(), folder / "kernels", std::filesystem::copy_options::recursive);
  write_file(folder / "kernels/ops/pool.cl", "this does not compile\n");
  const Environment environment{{"CONCORD_CACHE_DIR", folder.path().string()},
                                {"CONCORD_DRIVER_CACHE", "1"},
                                {"CONCORD_DEBUG", with_debug("kernel_dir=" + (folder / "kernels").string())}};
  const Ended ended = run_command({"doctor", "--device", device->info().id}, environment);
  INFO(ended.out);
  check_ends_badly(ended, "kernels are wrong on it or do not build");
  CHECK_THAT(ended.out, test::contains("\n  obstacle  lenet: building a kernel"));
  CHECK_THAT(ended.out, test::contains("\n  fine      lstm: ") && test::contains("launch overhead"));
}
