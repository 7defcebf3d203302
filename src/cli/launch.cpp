// concord launch: a program, once for each of several devices, as the ranks of one training.
#include "concord/cli/launch.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>

#include "concord/cli/command.hpp"
#include "concord/cli/validator.hpp"
#include "concord/collective/launch.hpp"
#include "concord/collective/world.hpp"
#include "concord/core/check.hpp"
#include "concord/core/platform.hpp"
#include "concord/device/registry.hpp"

namespace concord::cli {
namespace {

/// The words of this process's command line, the program as the file that it is.
std::vector<std::string> own_words() {
  const std::string line = read_file("/proc/self/cmdline");
  std::vector<std::string> words;
  for (std::size_t at = 0; at < line.size(); at = line.find('\0', at) + 1) words.emplace_back(line.c_str() + at);
  words.at(0) = std::filesystem::read_symlink("/proc/self/exe").string();
  return words;
}

int launch_on(const std::vector<DeviceInfo>& devices, const std::vector<std::string>& words) {
  std::vector<collective::RankProcess> ranks;
  for (const DeviceInfo& device : devices) {
    ranks.push_back({.words = words, .variables = {"CONCORD_DEVICE=" + device.id}, .name = device.id});
  }
  return collective::launch(ranks);
}

}  // namespace

void DevicesOption::add(CLI::App& command) {
  option = command
               .add_option("--devices", selectors,
                           "Train on several devices of this machine: all, or selectors with commas between, such as "
                           "opencl:gpu for every GPU. --batch is that of each device")
               ->delimiter(',')
               ->check(device_selectors(true));
}

std::vector<DeviceInfo> DevicesOption::devices() const {
  const std::vector<DeviceInfo> all = Device::list();
  std::vector<DeviceInfo> devices;
  for (const std::size_t place : select_devices(all, selectors)) devices.push_back(all[place]);
  return devices;
}

std::string DevicesOption::device_of_rank() const {
  const std::vector<DeviceInfo> all = devices();
  const std::optional<collective::World> world = collective::world_of_environment();
  if (!world) {
    if (all.size() == 1) return all[0].id;
    std::cout.flush();
    std::exit(launch_on(all, own_words()));
  }
  CONCORD_CHECK(static_cast<std::size_t>(world->local_rank) < all.size(), ArgumentError,
                "--devices names {} devices, but this is rank {} of the machine", all.size(), world->local_rank);
  return all[static_cast<std::size_t>(world->local_rank)].id;
}

void add_launch(CLI::App& app, std::vector<std::string> program) {
  CLI::App* command = app.add_subcommand(
      "launch",
      "Train on several devices: start a program once for each, as in `launch --devices all -- ./my_training`");
  const auto devices = std::make_shared<DevicesOption>();
  devices->add(*command);
  devices->option->required();
  command->callback([devices, program = std::move(program)] {
    CONCORD_CHECK(!program.empty(), ArgumentError,
                  "launch needs a program: concord launch --devices all -- ./my_training");
    std::cout.flush();
    std::exit(launch_on(devices->devices(), program));
  });
}

}  // namespace concord::cli
