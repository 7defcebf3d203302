// concord devices: what this machine can compute on.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "concord/cli/command.hpp"
#include "concord/concord.hpp"
#include "concord/core/human_bytes.hpp"
#include "concord/device/registry.hpp"
#include "concord/device/selection.hpp"

namespace concord::cli {
namespace {

nlohmann::json as_json(const DeviceInfo& info) {
  return {{"id", info.id},
          {"backend", info.backend},
          {"name", info.name},
          {"vendor", info.vendor},
          {"platform", info.platform},
          {"driver", info.driver},
          {"kind", name_of(info.kind)},
          {"memory_bytes", info.memory},
          {"max_allocation_bytes", info.max_allocation},
          {"local_memory_bytes", info.local_memory},
          {"compute_units", info.compute_units},
          {"clock_mhz", info.clock_mhz},
          {"max_work_group", info.max_work_group},
          {"unified_memory", info.unified_memory},
          {"precisions", info.precisions},
          {"pci_address", info.pci_address}};
}

void print(const std::vector<DeviceInfo>& devices) {
  std::vector<std::vector<std::string>> rows{{"device", "name", "kind", "platform", "driver", "memory", "units"}};
  for (const DeviceInfo& info : devices) {
    rows.push_back({info.id, info.name, std::string(name_of(info.kind)), info.platform, info.driver,
                    human_bytes(info.memory), fmt::format("{}", info.compute_units)});
  }
  std::cout << table(rows);
}

}  // namespace

void add_devices(CLI::App& app) {
  CLI::App* command = app.add_subcommand("devices", "List the devices of this machine");
  const auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "Print JSON");
  command->callback([json] {
    const std::vector<DeviceInfo> devices = Device::list();
    if (*json) {
      nlohmann::json list = nlohmann::json::array();
      for (const DeviceInfo& info : devices) list.push_back(as_json(info));
      std::cout << json_text(list);
    } else {
      print(devices);
    }
    std::cerr << idle_platforms_hint();
    if (devices.empty()) {
      throw DeviceError(
          "no device was found. Install an OpenCL driver: pocl-opencl-icd (any CPU), mesa-opencl-icd, "
          "intel-opencl-icd, or the package of your GPU's vendor.");
    }
  });
}

}  // namespace concord::cli
