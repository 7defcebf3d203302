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

/// Starts the ranks, and waits until all have ended. Each rank gets the environment of this process, its own variables
/// and those of torchrun: RANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT.
/// - Rank 0 has the standard input and output of this process. The standard output of the others is dropped. Each line
///   of their standard error comes after "[rank 1] ".
/// - When a rank fails, the others have some seconds to end by themselves. Then they are ended.
/// - If `least` is above 0, the others go on instead while at least `least` ranks are left. The standard output is then
///   that of the first rank that is left.
/// - A rank that has been stopped for a second more than the deadline (deadline_seconds) is killed.
/// - SIGINT and SIGTERM go on to all ranks. If this process is killed, all ranks end.
/// - What a failed rank, such as a script that a signal ended, has left running gets SIGTERM, and some seconds later
///   SIGKILL. What another rank has left running goes on; its output is dropped.
/// With several machines, the launcher of each calls this, all with the same `least`, which counts the ranks of all
/// machines. 0 stands for Rendezvous::least.
/// - Rank 0 is on the machine that serves the store. Without that machine no rank goes on.
/// - A failure that ends the training, or a signal, on one machine ends the ranks of all.
/// - A machine that has lost its own ranks waits for those that go on without it.
/// Returns 0 if all ranks succeed, or at least `least` of them if that is above 0. Returns 130 if a signal ended the
/// ranks. Else returns 1, after a message on standard error that names the first rank that failed. Throws IoError if a
/// program does not start, ArgumentError if there are fewer than `least` ranks, and what Rendezvous::meet throws.
[[nodiscard]] int launch(const std::vector<RankProcess>& ranks, int least = 0,
                         const std::optional<Machines>& machines = {});

}  // namespace concord::collective
