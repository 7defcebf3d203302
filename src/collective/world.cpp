// The environment variables of those that start the processes of a training, and the group that is made of them.
#include "concord/collective/world.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <memory>
#include <mutex>

#include "concord/collective/group.hpp"
#include "concord/collective/shared_memory.hpp"
#include "concord/collective/store.hpp"
#include "concord/core/check.hpp"
#include "concord/core/json.hpp"
#include "concord/core/platform.hpp"
#include "concord/core/version.hpp"

namespace concord::collective {
namespace {

struct Names {
  const char *rank, *size, *local_rank;
};
/// In the order in which they are looked for: a program that torchrun starts within a job of Slurm is torchrun's.
constexpr std::array kNames{Names{"RANK", "WORLD_SIZE", "LOCAL_RANK"},
                            Names{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
                            Names{"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"}};

int number_of(const char* name, const std::string& text, int least, int most) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  CONCORD_CHECK(error == std::errc{} && end == text.data() + text.size() && number >= least && number <= most,
                ArgumentError, "{} is '{}'; it must be a number from {} to {}", name, text, least, most);
  return number;
}

std::string needed(const char* name, const char* because) {
  const std::optional<std::string> text = environment(name);
  CONCORD_CHECK(text, ArgumentError, "{} is not set, but {} is: this process is part of a training on several devices",
                name, because);
  return *text;
}

/// The machine and its start, which containers of one machine share.
std::string machine() {
  try {
    std::string id = read_file("/proc/sys/kernel/random/boot_id");
    while (!id.empty() && id.back() == '\n') id.pop_back();
    return id;
  } catch (const Error&) {
    std::array<char, 256> name{};
    ::gethostname(name.data(), name.size() - 1);
    return name.data();
  }
}

/// What each process says about itself in the store.
struct Member {
  std::string version, machine, memory;  // path of the shared memory, of rank 0
};

Member member(Store& store, int rank, double deadline) {
  const std::string text = store.get(fmt::format("rank{}", rank));
  CONCORD_CHECK(!text.empty(), RankLost, "rank {} did not join the training within {:g} s", rank, deadline);
  const nlohmann::json json = parse_json(text, fmt::format("what rank {} says about itself", rank));
  CONCORD_CHECK(json.is_object() && json.contains("version"), ArgumentError, "rank {} is not a process of Concord",
                rank);
  return {json.value("version", ""), json.value("machine", ""), json.value("memory", "")};
}

/// Lets the system end this process when the process that launched it ends, unless a script lies between them.
void end_with_launcher() {
  const std::optional<std::string> launcher = environment(kStoreVariable);
  if (launcher == std::to_string(::getppid())) ::prctl(PR_SET_PDEATHSIG, SIGTERM);
}

GroupPtr join(const World& world) {
  end_with_launcher();
  const std::chrono::duration<double> deadline(deadline_seconds());
  // Rank 0 serves until the end of the process: the last ranks may still be reading.
  static std::unique_ptr<StoreServer> server;
  if (world.rank == 0 && !world.has_store) {
    const bool is_local = world.host == "localhost" || world.host.starts_with("127.");
    server = std::make_unique<StoreServer>(
        is_local ? StoreServer::Reach::this_machine : StoreServer::Reach::all_machines, world.port);
  }
  Store store(world.host, world.port, deadline);
  std::shared_ptr<SharedMemory> memory;
  nlohmann::json own{{"version", kVersion}, {"machine", machine()}, {"size", world.size}};
  if (world.rank == 0) {
    memory = std::make_shared<SharedMemory>(shared_bytes(world.size));
    own["memory"] = memory->path().string();
  }
  CONCORD_CHECK(store.set(fmt::format("rank{}", world.rank), own.dump()), ArgumentError,
                "two processes of the training have the rank {}", world.rank);
  std::string path;
  for (int rank = 0; rank < world.size; ++rank) {
    const Member other = member(store, rank, deadline.count());
    CONCORD_CHECK(other.version == kVersion, ArgumentError,
                  "rank {} has version {} of Concord, and rank {} has version {}; all need the same", world.rank,
                  kVersion, rank, other.version);
    CONCORD_CHECK(other.machine == machine(), NotSupported,
                  "rank {} is on another machine than rank {}; this version of Concord trains on the devices of one "
                  "machine",
                  rank, world.rank);
    if (rank == 0) path = other.memory;
  }
  if (!memory) memory = std::make_shared<SharedMemory>(path, shared_bytes(world.size));
  GroupPtr group = make_shared_group(std::move(memory), world.rank, world.size, deadline);
  group->barrier();
  return group;
}

}  // namespace

std::optional<World> world_of_environment() {
  constexpr int kMostRanks = 4096, kMostPorts = 65535;
  for (const Names& names : kNames) {
    const std::optional<std::string> size = environment(names.size), rank = environment(names.rank);
    if (!size || !rank) continue;
    World world;
    world.size = number_of(names.size, *size, 1, kMostRanks);
    world.rank = number_of(names.rank, *rank, 0, world.size - 1);
    if (world.size == 1) return std::nullopt;
    const std::optional<std::string> local = environment(names.local_rank);
    world.local_rank = local ? number_of(names.local_rank, *local, 0, world.size - 1) : world.rank;
    world.host = needed("MASTER_ADDR", names.size);
    world.port = static_cast<std::uint16_t>(number_of("MASTER_PORT", needed("MASTER_PORT", names.size), 1, kMostPorts));
    world.has_store = environment(kStoreVariable).has_value();
    // The agent of torchrun serves a store of its own on MASTER_PORT.
    if (environment("TORCHELASTIC_USE_AGENT_STORE") == "True") ++world.port;
    return world;
  }
  return std::nullopt;
}

GroupPtr group_of_process() {
  static std::mutex mutex;
  static GroupPtr group;
  static bool is_known = false;
  const std::lock_guard lock(mutex);
  if (is_known) return group;
  if (const std::optional<World> world = world_of_environment()) group = join(*world);
  is_known = true;
  return group;
}

}  // namespace concord::collective
