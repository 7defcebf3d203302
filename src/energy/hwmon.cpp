// Finds the chip of a device, and the file of the chip that reports energy or power.
#include "concord/energy/hwmon.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "concord/core/check.hpp"
#include "concord/core/platform.hpp"
#include "concord/energy/number_file.hpp"
#include "concord/energy/sampled_power.hpp"

namespace concord {
namespace {

using PciAddress = std::array<unsigned, 4>;

/// "0000:3b:00.0" and "00000000:3B:00.0" are the same address.
std::optional<PciAddress> address_in(const std::string& text) {
  PciAddress a{};
  if (std::sscanf(text.c_str(), "%x:%x:%x.%x", a.data(), &a[1], &a[2], &a[3]) != 4) return std::nullopt;
  return a;
}

bool is_driver_of(std::string_view driver, const std::string& vendor) {
  const auto says = [&](const char* word) { return vendor.find(word) != std::string::npos; };
  if (driver == "amdgpu") return says("AMD") || says("Advanced Micro Devices");
  return (driver == "i915" || driver == "xe") && says("Intel");
}

struct Chip {
  std::filesystem::path folder;
  std::string driver;
  std::optional<PciAddress> address;
};

std::vector<Chip> chips_of(const std::filesystem::path& folder, const std::string& vendor) {
  std::vector<Chip> chips;
  for (const std::filesystem::path& chip : paths_in(folder)) {
    std::string driver;
    if (!(std::ifstream(chip / "name") >> driver) || !is_driver_of(driver, vendor)) continue;
    std::error_code missing;
    const std::filesystem::path device = std::filesystem::canonical(chip / "device", missing);
    chips.push_back({chip, driver, address_in(device.filename().string())});
  }
  return chips;
}

class CounterMeter final : public EnergyMeter {
 public:
  CounterMeter(std::filesystem::path file, std::string source) : file_(std::move(file)), source_(std::move(source)) {}
  [[nodiscard]] double joules() override {
    const auto microjoules = number_in(file_);
    CONCORD_CHECK(microjoules.has_value(), DeviceError,
                  "{} can no longer be read; `concord doctor` checks whether the GPU still works", file_.string());
    return 1e-6 * static_cast<double>(*microjoules);
  }
  [[nodiscard]] std::string source() const override { return source_; }

 private:
  std::filesystem::path file_;
  std::string source_;
};

std::unique_ptr<EnergyMeter> meter_of(const Chip& chip) {
  const std::string name = fmt::format("GPU, hwmon of {}", chip.driver);
  for (const char* counter : {"energy1_input", "energy2_input"}) {
    if (number_in(chip.folder / counter)) return std::make_unique<CounterMeter>(chip.folder / counter, name);
  }
  for (const char* power : {"power1_average", "power1_input"}) {
    const std::filesystem::path file = chip.folder / power;
    const auto watts = [file]() -> std::optional<double> {
      const auto microwatts = number_in(file);
      return microwatts ? std::optional(1e-6 * static_cast<double>(*microwatts)) : std::nullopt;
    };
    if (watts()) return std::make_unique<SampledPower>(name, watts);
  }
  return nullptr;
}

}  // namespace

std::unique_ptr<EnergyMeter> hwmon_meter(const std::filesystem::path& folder, const std::string& vendor,
                                         const std::string& pci_address) {
  const std::vector<Chip> chips = chips_of(folder, vendor);
  if (pci_address.empty()) return chips.size() == 1 ? meter_of(chips.front()) : nullptr;
  const std::optional<PciAddress> wanted = address_in(pci_address);
  const auto has_slot = [&](const Chip& chip) {
    return wanted && chip.address && std::equal(wanted->begin() + 1, wanted->end(), chip.address->begin() + 1);
  };
  // AMD's drivers do not tell the domain: a slot that several domains have is not known.
  const auto found = std::ranges::find_if(chips, has_slot);
  return std::ranges::count_if(chips, has_slot) == 1 ? meter_of(*found) : nullptr;
}

}  // namespace concord
