// Energy counters: a library in place of NVML, a folder in place of the kernel's.
#include "concord/device/energy.hpp"

#include "concord/compile/measure.hpp"
#include "concord/core/platform.hpp"
#include "concord/device/nvml.hpp"
#include "concord/device/powercap.hpp"
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

}  // namespace

TEST_CASE("a GPU's energy is that of NVML's counter for its PCI address", "[device]") {
  const auto meter = nvml_meter(test_library(CONCORD_FAKE_NVML), "00000000:3B:00.0");
  REQUIRE(meter != nullptr);
  const double before = meter->joules();
  CHECK(meter->joules() - before == Approx(2.5));
  CHECK_THAT(meter->source(), contains("NVML"));
}

TEST_CASE("without NVML, the GPU or its counter nobody tells a GPU's energy", "[device]") {
  CHECK(nvml_meter("no-such-library.so", "00000000:3B:00.0") == nullptr);
  CHECK(nvml_meter("libm.so.6", "00000000:3B:00.0") == nullptr);
  CHECK(nvml_meter(test_library(CONCORD_FAKE_NVML), "00000000:5E:00.0") == nullptr);
  CHECK(nvml_meter(test_library(CONCORD_FAKE_NVML), "00000001:3B:00.0") == nullptr);
}

TEST_CASE("a CPU's energy is the sum of its processors, across the counters' ends", "[device]") {
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

TEST_CASE("without a counter that may be read nobody tells a CPU's energy", "[device]") {
  const TemporaryFolder folder;
  CHECK(powercap_meter(folder.path()) == nullptr);
  CHECK(powercap_meter(folder / "missing") == nullptr);
  write_zone(folder.path(), "intel-rapl:0", "package-0", "unreadable");
  CHECK(powercap_meter(folder.path()) == nullptr);
}

TEST_CASE("joules of a run are what the counter moved on by, over the runs", "[device]") {
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

TEST_CASE("who tells a device's energy goes by what it is and where it is plugged in", "[device]") {
  const TemporaryFolder folder;
  write_zone(folder.path(), "intel-rapl:0", "package-0", "1");
  const Setting processors("CONCORD_POWERCAP", folder.path().string());
  const Setting gpus("CONCORD_NVML", test_library(CONCORD_FAKE_NVML));
  DeviceInfo device;
  device.kind = DeviceKind::cpu;
  REQUIRE(energy_meter(device) != nullptr);
  CHECK_THAT(energy_meter(device)->source(), !contains("NVML"));
  device.kind = DeviceKind::gpu;
  CHECK(energy_meter(device) == nullptr);
  device.pci_address = "00000000:3B:00.0";
  REQUIRE(energy_meter(device) != nullptr);
  CHECK_THAT(energy_meter(device)->source(), contains("NVML"));
}
