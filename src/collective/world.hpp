// World: what the environment of a process says about the training that it belongs to. Internal to the library.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace concord::collective {

struct World {
  int rank = 0, size = 1;
  int local_rank = 0;      // among the ranks of this machine
  std::string host;        // where the store is
  std::uint16_t port = 0;  // of the store
  bool has_store = false;  // the launcher serves it; else rank 0 does
};

/// The process of `concord launch`, which serves the store itself, and without which no rank goes on.
inline constexpr const char* kStoreVariable = "CONCORD_STORE";
/// Where the store has what a rank of the start says about itself.
[[nodiscard]] std::string member_name(int rank);
/// What its launcher says there if it has ended before.
inline constexpr const char* kEndedMember = "ended";
/// What the store says after the ranks of a launcher have gone on without others, for the first time 1: those that go
/// on, as the JSON list of their first numbers.
[[nodiscard]] std::string survivors_name(int time);

/// Reads RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, as torchrun and `concord launch` set them; else the variables
/// of Open MPI or Slurm (srun), with MASTER_ADDR and MASTER_PORT as the user sets them. Nothing for a process that was
/// started alone, and for a world of one. Throws ArgumentError, which names the variable that is missing or wrong.
[[nodiscard]] std::optional<World> world_of_environment();
/// The same if `concord launch` made the world, else nothing: a process that is to launch ranks of its own may be a
/// task of another launcher.
[[nodiscard]] std::optional<World> world_of_launch();

/// How gradients are to be exchanged: $CONCORD_EXCHANGE, which is auto, peer, host or gloo; else auto. Throws
/// ArgumentError for another value.
[[nodiscard]] std::string wanted_transport();

}  // namespace concord::collective
