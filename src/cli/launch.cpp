// concord launch: a program, once for each of several devices, as the ranks of one training.
#include "concord/cli/launch.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>

#include "concord/cli/command.hpp"
#include "concord/cli/validator.hpp"
#include "concord/collective/gloo.hpp"
#include "concord/collective/interfaces.hpp"
#include "concord/collective/launch.hpp"
#include "concord/collective/rendezvous.hpp"
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

/// A number of machines.
std::string check_nodes(const std::string& text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc{} && end == text.data() + text.size() && number >= 1 && number <= 1024) return {};
  if (text.find(':') != std::string::npos) {
    return fmt::format("--nodes {}: takes the number of machines; a range of numbers is not supported", text);
  }
  return fmt::format("--nodes {}: must be a number of machines from 1 to 1024", text);
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

void RanksOptions::add(CLI::App& command) {
  devices.add(command);
  command
      .add_option(
          "--min-ranks", least,
          "When devices are lost, go on with those that are left, on all machines, if they are at least so many")
      ->check(CLI::PositiveNumber)
      ->needs(devices.option);
  CLI::Option* const many =
      command
          .add_option("--nodes", nodes,
                      "Train on so many machines: start the same command on each. Needs --devices and --rendezvous")
          ->check(CLI::Validator(check_nodes, "N"))
          ->needs(devices.option);
  CLI::Option* const place = command.add_option(
      "--rendezvous", rendezvous,
      "Where the machines meet, as HOST:PORT: the name or address of one of them, which all reach, and a free port");
  many->needs(place);
  place->needs(many);
  command.add_option("--interface", interface,
                     "The network interface for the exchange with other machines, by name or address. Default: "
                     "$CONCORD_INTERFACE, else the one that reaches --rendezvous");
  command
      .add_option("--exchange", exchange,
                  "How devices exchange gradients: auto, peer (memory of NVIDIA's GPUs), host (shared memory) or gloo "
                  "(TCP). Default: $CONCORD_EXCHANGE, else auto")
      ->check(one_of({"auto", "peer", "host", "gloo"}));
}

void RanksOptions::set_variables() const {
  if (!exchange.empty()) ::setenv("CONCORD_EXCHANGE", exchange.c_str(), 1);
  if (!interface.empty()) ::setenv("CONCORD_INTERFACE", interface.c_str(), 1);
  if (least > 0) ::setenv("CONCORD_MIN_RANKS", std::to_string(least).c_str(), 1);
}

void RanksOptions::launch(const std::vector<std::string>& words) const {
  std::vector<collective::RankProcess> ranks;
  for (const DeviceInfo& device : devices.devices()) {
    ranks.push_back({.words = words, .variables = {"CONCORD_DEVICE=" + device.id}, .name = device.id});
  }
  CONCORD_CHECK(nodes > 1 || static_cast<std::size_t>(least) <= ranks.size(), ArgumentError,
                "--min-ranks is {}, but --devices names {}", least, ranks.size());
  std::optional<collective::Machines> machines;
  if (nodes > 1) {
    CONCORD_CHECK(collective::has_gloo(), NotSupported,
                  "this Concord was built without Gloo, which trainings on several machines need: install libgloo-dev "
                  "and build again");
    if (!interface.empty()) static_cast<void>(collective::address_of_interface(interface));
    machines = collective::machines_at(rendezvous, nodes);
  }
  std::cout.flush();
  std::exit(collective::launch(ranks, least, machines));
}

std::string RanksOptions::device_of_rank() const {
  set_variables();
  const std::optional<collective::World> world = collective::world_of_environment();
  if (devices.selectors.empty()) {
    CONCORD_CHECK(world || (exchange.empty() && interface.empty()), ArgumentError,
                  "--exchange and --interface are for a training on several devices; name them with --devices");
    return {};
  }
  const std::vector<DeviceInfo> all = devices.devices();
  if (!world) {
    if (all.size() == 1 && nodes == 1) return all[0].id;
    launch(own_words());
  }
  CONCORD_CHECK(static_cast<std::size_t>(world->local_rank) < all.size(), ArgumentError,
                "--devices names {} devices, but this is rank {} of the machine", all.size(), world->local_rank);
  return all[static_cast<std::size_t>(world->local_rank)].id;
}

void add_launch(CLI::App& app, std::vector<std::string> program) {
  CLI::App* command = app.add_subcommand(
      "launch",
      "Train on several devices: start a program once for each, as in `launch --devices all -- ./my_training`");
  const auto ranks = std::make_shared<RanksOptions>();
  ranks->add(*command);
  ranks->devices.option->required();
  command->callback([ranks, program = std::move(program)] {
    CONCORD_CHECK(!program.empty(), ArgumentError,
                  "launch needs a program: concord launch --devices all -- ./my_training");
    ranks->set_variables();
    ranks->launch(program);
  });
}

}  // namespace concord::cli
