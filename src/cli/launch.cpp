// concord launch: a program, once for each of several devices, as the ranks of one training.
#include "concord/cli/launch.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>

#include "concord/cli/command.hpp"
#include "concord/cli/counted.hpp"
#include "concord/cli/validator.hpp"
#include "concord/collective/gloo.hpp"
#include "concord/collective/group.hpp"
#include "concord/collective/interfaces.hpp"
#include "concord/collective/launch.hpp"
#include "concord/collective/rendezvous.hpp"
#include "concord/core/check.hpp"
#include "concord/core/platform.hpp"
#include "concord/core/text.hpp"
#include "concord/device/selection.hpp"

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

/// Numbers of machines: those with which a training starts if not all have come, and all.
struct Nodes {
  int fewest = 0;  // 0: all
  int count = 1;
};

/// Reads "N" or "MIN:MAX".
std::optional<Nodes> nodes_of(const std::string& text) {
  const auto number = [](const std::string& digits) {
    const auto value = number_in_text<int>(digits);
    return value && *value >= 1 && *value <= 1024 ? value : std::nullopt;
  };
  const std::size_t colon = text.find(':');
  const std::optional<int> count = number(colon == std::string::npos ? text : text.substr(colon + 1));
  if (!count) return std::nullopt;
  if (colon == std::string::npos) return Nodes{0, *count};
  const std::optional<int> fewest = number(text.substr(0, colon));
  if (!fewest || *fewest > *count) return std::nullopt;
  return Nodes{*fewest, *count};
}

std::string check_nodes(const std::string& text) {
  if (nodes_of(text)) return {};
  return fmt::format("--nodes {}: must be a number of machines from 1 to 1024, or a range of them such as 2:4", text);
}

}  // namespace

void DevicesOption::add(CLI::App& command) {
  option = command
               .add_option("--devices", selectors,
                           "Train on several devices of this machine: all (all GPUs; without a GPU the CPU), or "
                           "selectors with commas between, such as opencl:gpu for every GPU. --batch is that of each "
                           "device")
               ->delimiter(',')
               ->check(device_selectors(true));
}

std::vector<DeviceInfo> DevicesOption::devices() const {
  const std::vector<DeviceInfo> all = Device::list();
  std::vector<DeviceInfo> devices;
  for (const std::size_t place : select_devices(all, selectors)) devices.push_back(all[place]);
  return devices;
}

std::optional<collective::World> world_of_rank(bool have_nodes) {
  return have_nodes ? collective::world_of_launch() : collective::world_of_environment();
}

void RanksOptions::add(CLI::App& command) {
  devices.add(command);
  command
      .add_option(
          "--min-ranks", least,
          "When devices are lost, go on with those that are left, on all machines, if they are at least so many. "
          "Default: $CONCORD_MIN_RANKS, else all")
      ->check(CLI::PositiveNumber)
      ->needs(devices.option);
  CLI::Option* const many =
      command
          .add_option(
              "--nodes", nodes,
              "Train on so many machines: start the same command on each. MIN:MAX starts with those that have come "
              "by the deadline, and goes on down to MIN. Needs --devices and --rendezvous")
          ->check(CLI::Validator(check_nodes, "N|MIN:MAX"))
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
  const int enough = least > 0 ? least : collective::least_ranks();
  CONCORD_CHECK(have_nodes() || static_cast<std::size_t>(enough) <= ranks.size(), ArgumentError,
                "{} is {}, but --devices names {}", least > 0 ? "--min-ranks" : "CONCORD_MIN_RANKS", enough,
                ranks.size());
  std::optional<collective::Machines> machines;
  if (have_nodes()) {
    CONCORD_CHECK(collective::has_gloo(), NotSupported,
                  "this Concord was built without Gloo, which trainings on several machines need: install libgloo-dev "
                  "and build again");
    if (!interface.empty()) static_cast<void>(collective::address_of_interface(interface));
    const std::optional<Nodes> numbers = nodes_of(nodes);
    machines = collective::machines_at(rendezvous, numbers->count, numbers->fewest);
  }
  std::cout.flush();
  std::exit(collective::launch(ranks, enough, machines));
}

std::string RanksOptions::device_of_rank() const {
  set_variables();
  const std::optional<collective::World> world = world_of_rank(have_nodes());
  if (devices.selectors.empty()) {
    CONCORD_CHECK(world || (exchange.empty() && interface.empty()), ArgumentError,
                  "--exchange and --interface are for a training on several devices; name them with --devices");
    return {};
  }
  const std::vector<DeviceInfo> all = devices.devices();
  if (!world) {
    const bool is_only_rank = environment(collective::kStoreVariable).has_value();  // of a launch with one
    if (all.size() == 1 && (!have_nodes() || is_only_rank)) return all[0].id;
    launch(own_words());
  }
  CONCORD_CHECK(static_cast<std::size_t>(world->local_rank) < all.size(), ArgumentError,
                "--devices names {}, but this is rank {} of the machine", counted(all.size(), "device"),
                world->local_rank);
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
