// DevicesOption: several devices of this machine, on each of which a process of its own trains.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "concord/device/device.hpp"

namespace concord::cli {

/// --devices.
struct DevicesOption {
  std::vector<std::string> selectors;
  CLI::Option* option = nullptr;
  void add(CLI::App& command);
  /// In the order of their ranks. Throws ArgumentError for a device that is named twice.
  [[nodiscard]] std::vector<DeviceInfo> devices() const;
  /// The selector of this rank's device. If this process is no rank yet, starts the command once for each device,
  /// waits, and ends this process with the exit code of the ranks.
  [[nodiscard]] std::string device_of_rank() const;
};

}  // namespace concord::cli
