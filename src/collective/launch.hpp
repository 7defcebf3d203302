// launch: starts the ranks of a training as processes of this machine, and ends them together, also with those of other
// machines. Internal to the library.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "concord/collective/rendezvous.hpp"

namespace concord::collective {

/// A rank to start.
struct RankProcess {
  std::vector<std::string> words;      // the program, found as a shell finds it, and its arguments
  std::vector<std::string> variables;  // of its environment, "NAME=value"
  std::string name;                    // for messages: "opencl:1"
};

/// Starts the ranks, and waits for their end. Each gets the environment of this process, its own variables and those of
/// torchrun: RANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT.
/// - Rank 0 has the input and output of this process. The standard output of the others is dropped, and each line of
///   their standard error comes after "[rank 1] ".
/// - When one rank fails, the others have some seconds to end by themselves; then they are ended. With `least` above 0
///   that is so when fewer than `least` ranks are left; before, they go on. The standard output is that of the first
///   rank that is left.
/// - A rank that is stopped for the deadline (deadline_seconds) is killed.
/// - SIGINT and SIGTERM go on to all ranks. All ranks end when this process is killed.
/// With several machines, each calls this with the same `least`, which counts the ranks of all and is else what
/// Rendezvous::least says, and all of them end together: a failure that ends the training, or a signal, on one ends the
/// ranks of all. A machine whose ranks are lost waits for those that go on without it. Rank 0 is on the machine that
/// serves the store, without which none goes on. Returns 0 if all ranks succeed, or `least` of them; else 1 after a
/// message on standard error that names the first rank that failed; 130 if a signal ended the ranks. Throws IoError if
/// a program does not start, ArgumentError if there are fewer than `least` ranks, and what Rendezvous::meet throws.
[[nodiscard]] int launch(const std::vector<RankProcess>& ranks, int least = 0,
                         const std::optional<Machines>& machines = {});

}  // namespace concord::collective
