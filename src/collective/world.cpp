// The environment variables of those that start the processes of a training, and the group that is made of them.
#include "concord/collective/world.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <vector>

#include "concord/collective/gathered.hpp"
#include "concord/collective/gloo.hpp"
#include "concord/collective/group.hpp"
#include "concord/collective/interfaces.hpp"
#include "concord/collective/shared_group.hpp"
#include "concord/collective/store.hpp"
#include "concord/core/check.hpp"
#include "concord/core/json.hpp"
#include "concord/core/launched_rank.hpp"
#include "concord/core/platform.hpp"
#include "concord/core/text.hpp"
#include "concord/core/version.hpp"

namespace concord::collective {
namespace {

int number_of(const char* name, const std::string& text, int least, int most) {
  const std::optional<int> number = number_in_text<int>(text);
  CONCORD_CHECK(number && *number >= least && *number <= most, ArgumentError,
                "{} is '{}'; it must be a number from {} to {}", name, text, least, most);
  return *number;
}

/// Of Gloo, to each other rank.
int wanted_connections() {
  constexpr int kDefault = 2, kMost = 64;
  const std::optional<std::string> text = environment("CONCORD_CONNECTIONS");
  return text ? number_of("CONCORD_CONNECTIONS", *text, 1, kMost) : kDefault;
}

std::string needed(const char* name, const char* because) {
  const std::optional<std::string> text = environment(name);
  CONCORD_CHECK(text, ArgumentError, "{} is not set, but {} is: this process is part of a training on several devices",
                name, because);
  return *text;
}

/// The machine and its start. Containers count as machines of their own: they share neither processes nor addresses.
std::string machine() {
  try {
    std::string id = read_file("/proc/sys/kernel/random/boot_id");
    while (!id.empty() && id.back() == '\n') id.pop_back();
    for (const char* space : {"pid", "net"}) {
      std::error_code ignored;
      id += ' ' + std::filesystem::read_symlink(fmt::format("/proc/self/ns/{}", space), ignored).string();
    }
    return id;
  } catch (const Error&) {
    return host_name();
  }
}

/// What each process says about itself in the store.
struct Member {
  int rank = 0;  // of the start
  std::string version, machine, exchange;
  bool has_gloo = false;
  int connections = 1;
};

/// Nothing if the rank has ended before it said so.
std::optional<Member> member(Store& store, int rank, double deadline) {
  const std::string text = store.get(member_name(rank));
  CONCORD_CHECK(!text.empty(), RankLost, "rank {} did not join the training within {:g} s", rank, deadline);
  if (text == kEndedMember) return std::nullopt;
  const nlohmann::json json = parse_json(text, fmt::format("what rank {} says about itself", rank));
  CONCORD_CHECK(json.is_object() && json.contains("version"), ArgumentError, "rank {} is not a process of Concord",
                rank);
  return Member{rank,
                json.value("version", ""),
                json.value("machine", ""),
                json.value("exchange", ""),
                json.value("gloo", false),
                json.value("connections", 1)};
}

/// The ranks that fit together: all, or where the training goes on without some, enough. The store has one text for
/// each, so all ranks find the same.
std::vector<Member> members(Store& store, const World& world, double deadline) {
  const int least = least_ranks() > 0 ? least_ranks() : world.size;
  std::vector<Member> all;
  for (int rank = 0; rank < world.size; ++rank) {
    const std::optional<Member> other = member(store, rank, deadline);
    if (!other) {
      const auto may_be = static_cast<int>(all.size()) + world.size - rank - 1;
      CONCORD_CHECK(may_be >= least, RankLost, "rank {} ended before it joined the training", rank);
      continue;
    }
    CONCORD_CHECK(other->version == kVersion, ArgumentError,
                  "rank {} has version {} of Concord, and rank {} has version {}; all need the same", world.rank,
                  kVersion, rank, other->version);
    CONCORD_CHECK(other->exchange == wanted_transport(), ArgumentError,
                  "rank {} is to exchange by {}, and rank {} by {}; CONCORD_EXCHANGE must be the same on all",
                  world.rank, wanted_transport(), rank, other->exchange);
    all.push_back(*other);
  }
  return all;
}

/// The memory that the ranks of one machine share; the first of them makes it.
std::shared_ptr<SharedMemory> memory_of(Store& store, bool is_first, int size, double deadline) {
  constexpr const char* kName = "memory";
  if (is_first) {
    auto memory = std::make_shared<SharedMemory>(shared_bytes(size));
    static_cast<void>(store.set(kName, memory->path().string()));
    return memory;
  }
  const std::string path = store.get(kName);
  CONCORD_CHECK(!path.empty(), RankLost, "the first rank did not share its memory within {:g} s", deadline);
  return std::make_shared<SharedMemory>(path, shared_bytes(size));
}

/// Where the other ranks find this process: on the interface that the user names, else on that by which it reaches the
/// store.
std::string own_address(const Store& store, bool is_one_machine) {
  if (const std::optional<std::string> name = environment("CONCORD_INTERFACE")) return address_of_interface(*name);
  std::string address = store.own_address();
  if (is_one_machine || !is_loopback(address)) return address;
  address = only_outer_address();
  CONCORD_CHECK(!address.empty(), ArgumentError,
                "the ranks meet at an address that only this machine reaches, and are on several machines; name one "
                "that all reach, or the network interface with --interface or CONCORD_INTERFACE");
  return address;
}

/// Lets the system end this process by `signal` when the process that launched it ends, unless a script lies between
/// them.
void end_with_launcher(int signal) {
  const std::optional<std::string> launcher = environment(kStoreVariable);
  if (launcher == std::to_string(::getppid())) ::prctl(PR_SET_PDEATHSIG, signal);
}

GroupPtr join(const World& world) {
  end_with_launcher(SIGTERM);
  const std::chrono::duration<double> deadline(deadline_seconds());
  // Rank 0 serves until the end of the process: the last ranks may still be reading.
  static std::unique_ptr<StoreServer> server;
  if (world.rank == 0 && !world.has_store) {
    const std::string address = address_to_serve(world.host);  // of a container the host may be another machine
    server = std::make_unique<StoreServer>(address.empty() ? "0.0.0.0" : address, world.port);
  }
  const auto store = std::make_shared<Store>(world.host, world.port, deadline);
  const nlohmann::json own{{"version", kVersion},
                           {"machine", machine()},
                           {"exchange", wanted_transport()},
                           {"gloo", has_gloo()},
                           {"connections", wanted_connections()}};
  CONCORD_CHECK(
      store->set(member_name(world.rank), own.dump()), ArgumentError,
      "another process of the training has had the rank {}: two have it at once, or this is the second program "
      "of a launch, which starts one for each rank",
      world.rank);
  const std::vector<Member> all = members(*store, world, deadline.count());
  const auto size = static_cast<int>(all.size());
  const auto rank = static_cast<int>(std::ranges::find(all, world.rank, &Member::rank) - all.begin());
  if (size == 1) return nullptr;
  const auto elsewhere = std::ranges::find_if(all, [](const Member& one) { return one.machine != machine(); });
  const bool is_one_machine = elsewhere == all.end();
  GroupPtr group;
  if (is_one_machine && wanted_transport() != "gloo") {
    group = make_shared_group(memory_of(*store, rank == 0, size, deadline.count()), rank, size, deadline);
  } else {
    // Where others may go on, a rank whose launcher is killed is lost: SIGTERM would stop all of them.
    if (least_ranks() > 0) end_with_launcher(SIGKILL);
    CONCORD_CHECK(is_one_machine || wanted_transport() == "auto" || wanted_transport() == "gloo", NotSupported,
                  "ranks {} and {} are on several machines, which do not exchange by {}", world.rank, elsewhere->rank,
                  wanted_transport());
    const auto without = std::ranges::find_if(all, [](const Member& one) { return !one.has_gloo; });
    CONCORD_CHECK(without == all.end(), NotSupported,
                  "rank {} runs a Concord that was built without Gloo, which an exchange by TCP needs: install "
                  "libgloo-dev and build again",
                  without->rank);
    group = make_gloo_group(store, {.rank = rank,
                                    .size = size,
                                    .address = own_address(*store, is_one_machine),
                                    .connections = all[0].connections,
                                    .deadline = deadline,
                                    .prefix = kFirstGroup});
  }
  // Those that go on without a rank notice its loss where they can.
  if (least_ranks() == 0) group->barrier();
  return group;
}

}  // namespace

std::optional<World> world_of_environment() {
  constexpr int kMostPorts = 65535;
  const std::optional<LaunchedRank> own = launched_rank();
  if (!own) return std::nullopt;
  World world{.rank = own->rank, .size = own->size, .local_rank = own->local_rank, .host = {}};
  world.host = needed("MASTER_ADDR", own->size_variable);
  const std::string port = needed("MASTER_PORT", own->size_variable);
  world.port = static_cast<std::uint16_t>(number_of("MASTER_PORT", port, 1, kMostPorts));
  world.has_store = environment(kStoreVariable).has_value();
  // The agent of torchrun serves a store of its own on MASTER_PORT.
  if (!world.has_store && environment("TORCHELASTIC_USE_AGENT_STORE") == "True") ++world.port;
  return world;
}

std::optional<World> world_of_launch() { return environment(kStoreVariable) ? world_of_environment() : std::nullopt; }

std::string wanted_transport() {
  const std::string wanted = environment("CONCORD_EXCHANGE").value_or("auto");
  CONCORD_CHECK(wanted == "auto" || wanted == "peer" || wanted == "host" || wanted == "gloo", ArgumentError,
                "CONCORD_EXCHANGE is '{}'; it must be auto, peer, host or gloo", wanted);
  return wanted;
}

namespace {

/// The group of this process, and which ranks of the start are in it.
struct Membership {
  std::mutex mutex;
  bool is_known = false;
  GroupPtr group;
  std::optional<World> world;
};

Membership& membership() {
  static Membership one;
  return one;
}

/// Tells the launcher which ranks of the start go on.
void tell_launcher(const World& world, const GroupPtr& group) {
  if (!world.has_store) return;
  try {
    const std::vector<int> ranks = group ? gathered(*group, world.rank) : std::vector{world.rank};
    if (group && group->rank() > 0) return;
    const std::string text = nlohmann::json(ranks).dump();
    Store store(world.host, world.port, std::chrono::duration<double>(deadline_seconds()));
    for (int time = 1; !store.set(survivors_name(time), text);) ++time;
  } catch (const RankLost&) {  // what the ranks exchange next says so
  }
}

}  // namespace

std::string member_name(int rank) { return fmt::format("rank{}", rank); }
std::string survivors_name(int time) { return fmt::format("survivors{}", time); }

GroupPtr group_of_process() {
  Membership& own = membership();
  const std::lock_guard lock(own.mutex);
  if (own.is_known) return own.group;
  own.world = world_of_environment();
  if (own.world) {
    own.group = join(*own.world);
    const int size = own.group ? own.group->size() : 1;
    if (size < own.world->size) tell_launcher(*own.world, own.group);
  }
  own.is_known = true;
  return own.group;
}

GroupPtr survivors_of(const GroupPtr& group) {
  GroupPtr next = group->survivors();
  Membership& own = membership();
  const std::lock_guard lock(own.mutex);
  if (group != own.group) return next;
  own.group = next;
  tell_launcher(*own.world, next);
  return next;
}

}  // namespace concord::collective
