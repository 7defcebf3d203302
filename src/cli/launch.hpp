// DevicesOption: several devices of this machine. RanksOptions: a process on each of them, here and on other machines.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "concord/collective/world.hpp"
#include "concord/device/device.hpp"

namespace concord::cli {

/// --devices.
struct DevicesOption {
  std::vector<std::string> selectors;
  CLI::Option* option = nullptr;
  void add(CLI::App& command);
  /// In the order of their ranks. Throws ArgumentError for a device that is named twice.
  [[nodiscard]] std::vector<DeviceInfo> devices() const;
};

/// The world that this process is a rank of. With --nodes that is only one of `concord launch`: a process that another
/// launcher started, as srun starts one on each machine, launches the ranks.
[[nodiscard]] std::optional<collective::World> world_of_rank(bool have_nodes);

/// --devices, --min-ranks, --nodes, --rendezvous, --interface and --exchange.
struct RanksOptions {
  DevicesOption devices;
  int least = 0;            // ranks with which it goes on when others are lost; 0: $CONCORD_MIN_RANKS, else all
  std::string nodes = "1";  // or "MIN:MAX"
  std::string rendezvous, interface, exchange;
  void add(CLI::App& command);
  /// Whether several machines may take part.
  [[nodiscard]] bool have_nodes() const { return nodes != "1"; }
  /// Those of the options that are environment variables too, for this process and those that it starts.
  void set_variables() const;
  /// Starts this program on each device, waits, and ends this process with the exit code of the ranks.
  [[noreturn]] void launch(const std::vector<std::string>& words) const;
  /// The selector of this rank's device; empty without --devices. If this process is no rank yet, and is to be several,
  /// launches the command.
  [[nodiscard]] std::string device_of_rank() const;
};

}  // namespace concord::cli
