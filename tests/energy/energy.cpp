// Energy counters: a library in place of NVML, a folder in place of the kernel's.
#include <atomic>
#include <chrono>
#include <thread>

#include "concord/compile/measure.hpp"
#include "concord/core/platform.hpp"
#include "concord/energy/hwmon.hpp"
#include "concord/energy/meter.hpp"
#include "concord/energy/nvml.hpp"
#include "concord/energy/powercap.hpp"
#include "concord/energy/sampled_power.hpp"
#include "concord_test.hpp"
#include "files.hpp"
#include "setting.hpp"
#include "test_library.hpp"

using namespace concord;
using namespace concord::test;

namespace {

void write_zone(const std::filesystem::path& folder, const std::string& zone, const std::string& name,
                const std::string& microjoules) {
  std::filesystem::create_directories(folder / zone);
  write_file(folder / zone / "name", name + "\n");
  write_file(folder / zone / "energy_uj", microjoules + "\n");
  write_file(folder / zone / "max_energy_range_uj", "10000000\n");
}

/// A chip of `driver` whose device is plugged in at `address`, with a file of `number` microjoules or microwatts.
void write_chip(const std::filesystem::path& folder, const std::string& chip, const std::string& driver,
                const std::string& address, const std::string& file, const std::string& number) {
  std::filesystem::create_directories(folder / "pci" / address);
  std::filesystem::create_directories(folder / "hwmon" / chip);
  const std::filesystem::path device = folder / "hwmon" / chip / "device";
  if (!std::filesystem::exists(device)) {
    std::filesystem::create_directory_symlink(std::filesystem::path("../../pci") / address, device);
  }
  write_file(folder / "hwmon" / chip / "name", driver + "\n");
  write_file(folder / "hwmon" / chip / file, number + "\n");
}

const std::string kAmd = "Advanced Micro Devices, Inc.", kIntel = "Intel(R) Corporation";

using Clock = std::chrono::steady_clock;

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

TEST_CASE("a GPU's energy is that of NVML's counter for its PCI address", "[energy]") {
  const auto meter = nvml_meter(test_library(CONCORD_FAKE_NVML), "00000000:3B:00.0");
  REQUIRE(meter != nullptr);
  const double before = meter->joules();
  CHECK(meter->joules() - before == Approx(2.5));
  CHECK_THAT(meter->source(), contains("NVML"));
}

TEST_CASE("without NVML, the GPU or its counter nobody tells a GPU's energy", "[energy]") {
  CHECK(nvml_meter("no-such-library.so", "00000000:3B:00.0") == nullptr);
  CHECK(nvml_meter("libm.so.6", "00000000:3B:00.0") == nullptr);
  CHECK(nvml_meter(test_library(CONCORD_FAKE_NVML), "00000000:5E:00.0") == nullptr);
  CHECK(nvml_meter(test_library(CONCORD_FAKE_NVML), "00000001:3B:00.0") == nullptr);
}

TEST_CASE("a CPU's energy is the sum of its processors, across the counters' ends", "[energy]") {
  const TemporaryFolder folder;
  write_zone(folder.path(), "intel-rapl:0", "package-0", "9000000");
  write_zone(folder.path(), "intel-rapl:1", "package-1", "500000");
  write_zone(folder.path(), "intel-rapl:0:0", "core", "77");
  write_zone(folder.path(), "intel-rapl:2", "psys", "88");
  const auto meter = powercap_meter(folder.path());
  REQUIRE(meter != nullptr);
  CHECK(meter->joules() == 0);
  write_zone(folder.path(), "intel-rapl:0", "package-0", "500000");
  write_zone(folder.path(), "intel-rapl:1", "package-1", "750000");
  CHECK(meter->joules() == Approx(1.75));
  std::filesystem::remove(folder / "intel-rapl:1" / "energy_uj");
  CHECK_THAT(message_of<DeviceError>([&] { static_cast<void>(meter->joules()); }), contains("intel-rapl:1"));
}

TEST_CASE("without a counter that may be read nobody tells a CPU's energy", "[energy]") {
  const TemporaryFolder folder;
  CHECK(powercap_meter(folder.path()) == nullptr);
  CHECK(powercap_meter(folder / "missing") == nullptr);
  write_zone(folder.path(), "intel-rapl:0", "package-0", "unreadable");
  CHECK(powercap_meter(folder.path()) == nullptr);
}

TEST_CASE("a GPU of AMD or Intel has the energy counter of the sensors at its PCI address", "[energy]") {
  const TemporaryFolder folder;
  const std::filesystem::path sensors = folder / "hwmon";
  write_chip(folder.path(), "hwmon0", "amdgpu", "0000:03:00.0", "energy1_input", "7000000");
  write_chip(folder.path(), "hwmon1", "amdgpu", "0001:3b:00.0", "energy1_input", "5000000");
  write_chip(folder.path(), "hwmon2", "xe", "0000:3b:00.0", "energy2_input", "2000000");
  write_chip(folder.path(), "hwmon3", "nvme", "0000:04:00.0", "energy1_input", "1000000");
  const auto amd = hwmon_meter(sensors, kAmd, "00000001:3B:00.0"), intel = hwmon_meter(sensors, kIntel, "");
  REQUIRE(amd != nullptr);
  REQUIRE(intel != nullptr);
  CHECK(amd->joules() == 5);
  CHECK(intel->joules() == 2);
  CHECK(amd->source() == "GPU, hwmon of amdgpu");
  CHECK(intel->source() == "GPU, hwmon of xe");
  write_chip(folder.path(), "hwmon1", "amdgpu", "0001:3b:00.0", "energy1_input", "6500000");
  CHECK(amd->joules() == 6.5);
  write_chip(folder.path(), "hwmon2", "xe", "0000:3b:00.0", "energy1_input", "9000000");
  CHECK(hwmon_meter(sensors, "Intel", "00000000:3B:00.0")->joules() == 9);  // the whole card
  std::filesystem::remove(sensors / "hwmon1" / "energy1_input");
  CHECK_THAT(message_of<DeviceError>([&] { static_cast<void>(amd->joules()); }), contains("hwmon1"));
}

TEST_CASE("no sensors, those of another device, or one of several serve no GPU", "[energy]") {
  const TemporaryFolder folder;
  const std::filesystem::path sensors = folder / "hwmon";
  CHECK(hwmon_meter(sensors, kAmd, "") == nullptr);
  write_chip(folder.path(), "hwmon0", "amdgpu", "0000:03:00.0", "temp1_input", "40000");
  CHECK(hwmon_meter(sensors, kAmd, "00000000:03:00.0") == nullptr);
  write_chip(folder.path(), "hwmon0", "amdgpu", "0000:03:00.0", "energy1_input", "1");
  CHECK(hwmon_meter(sensors, kAmd, "00000000:03:00.0") != nullptr);
  CHECK(hwmon_meter(sensors, "The pocl project AMD", "") != nullptr);
  CHECK(hwmon_meter(sensors, kIntel, "00000000:03:00.0") == nullptr);
  CHECK(hwmon_meter(sensors, "NVIDIA Corporation", "00000000:03:00.0") == nullptr);
  CHECK(hwmon_meter(sensors, kAmd, "00000000:05:00.0") == nullptr);
  CHECK(hwmon_meter(sensors, kAmd, "somewhere") == nullptr);
  write_chip(folder.path(), "hwmon1", "amdgpu", "0000:05:00.0", "energy1_input", "1");
  CHECK(hwmon_meter(sensors, kAmd, "") == nullptr);
  // Drivers of AMD tell no domain.
  write_chip(folder.path(), "hwmon2", "amdgpu", "0001:07:00.0", "energy1_input", "1");
  CHECK(hwmon_meter(sensors, kAmd, "00000000:07:00.0") != nullptr);
  write_chip(folder.path(), "hwmon3", "amdgpu", "0002:07:00.0", "energy1_input", "1");
  CHECK(hwmon_meter(sensors, kAmd, "00000000:07:00.0") == nullptr);
}

TEST_CASE("where sensors tell the power alone it is summed up over the time", "[energy]") {
  const TemporaryFolder folder;
  const std::string chip = "hwmon0", driver = "amdgpu", address = "0000:03:00.0";
  write_chip(folder.path(), chip, driver, address, "power1_input", "1000000");
  write_chip(folder.path(), chip, driver, address, "power1_average", "30000000");
  const auto meter = hwmon_meter(folder / "hwmon", kAmd, "00000000:03:00.0");
  REQUIRE(meter != nullptr);
  CHECK(meter->source() == "GPU, hwmon of amdgpu, its power summed every 20 ms");
  const Clock::time_point earliest = Clock::now();
  const double before = meter->joules();
  const Clock::time_point begin = Clock::now();
  while (seconds_between(begin, Clock::now()) < 0.01) continue;
  const Clock::time_point end = Clock::now();
  const double used = meter->joules() - before;
  CHECK(used >= 30 * seconds_between(begin, end));
  CHECK(used <= 30 * seconds_between(earliest, Clock::now()));
  std::filesystem::remove(folder / "hwmon" / chip / "power1_average");
  CHECK_THAT(message_of<DeviceError>([&] { static_cast<void>(meter->joules()); }),
             contains("hwmon of amdgpu") && contains("concord doctor"));
}

TEST_CASE("power is looked at while nobody asks, until the meter ends", "[energy]") {
  std::atomic<int> looks = 0;
  double used = 0;
  {
    SampledPower meter(
        "device",
        [&]() -> std::optional<double> {
          ++looks;
          return 1;
        },
        std::chrono::milliseconds(1));
    while (looks < 5) std::this_thread::yield();
    used = meter.joules();
  }
  CHECK(used >= 0.003);  // four looks at least a millisecond apart, and what the clock's steps take
  const int last = looks;
  CHECK(last >= 6);
}

TEST_CASE("joules of a run are what the counter moved on by, over the runs", "[energy]") {
  class Metronome final : public EnergyMeter {  // a joule a look
   public:
    double joules() override { return static_cast<double>(++looks_); }
    std::string source() const override { return "a test"; }

   private:
    int looks_ = 0;
  };
  for (const DevicePtr& device : devices()) {
    Graph graph;
    const Value y = graph.input("x", {DType::f32, Shape{4}}) + 1;
    Program program = compile(graph, {&y, 1}, std::make_shared<Variables>(device, 1));
    program.write("x", Tensor::of(Shape{4}, std::vector<float>{1, 2, 3, 4}));
    Metronome metronome;
    const double one = joules_a_run(program, metronome, 0.01);
    CHECK(one > 0);
    CHECK(one <= 1);
  }
}

TEST_CASE("who tells a device's energy goes by what it is and where it is plugged in", "[energy]") {
  const TemporaryFolder folder;
  write_zone(folder.path(), "intel-rapl:0", "package-0", "1");
  const DebugOption processors("powercap", folder.path().string());
  const DebugOption gpus("nvml", test_library(CONCORD_FAKE_NVML));
  DeviceInfo device;
  device.kind = DeviceKind::cpu;
  REQUIRE(energy_meter(device) != nullptr);
  CHECK_THAT(energy_meter(device)->source(), !contains("NVML"));
  device.kind = DeviceKind::gpu;
  CHECK(energy_meter(device) == nullptr);
  device.pci_address = "00000000:3B:00.0";
  REQUIRE(energy_meter(device) != nullptr);
  CHECK_THAT(energy_meter(device)->source(), contains("NVML"));
  write_chip(folder.path(), "hwmon0", "amdgpu", "0000:3b:00.0", "energy1_input", "1");
  const DebugOption sensors("hwmon", (folder / "hwmon").string());
  device.vendor = kAmd;
  CHECK_THAT(energy_meter(device)->source(), contains("NVML"));  // it knows the GPU
  const DebugOption no_nvml("nvml", "/nonexistent");
  REQUIRE(energy_meter(device) != nullptr);
  CHECK_THAT(energy_meter(device)->source(), contains("amdgpu"));
  device.vendor = "NVIDIA Corporation";
  CHECK(energy_meter(device) == nullptr);
}
