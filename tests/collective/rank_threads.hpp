// Ranks of a group as threads of a test.
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "concord/collective/gloo.hpp"
#include "concord/collective/shared_group.hpp"
#include "concord_test.hpp"

namespace concord::test {

enum class Transport : std::uint8_t { host, gloo };

/// Those that this build has.
inline std::vector<Transport> transports() {
  if (collective::has_gloo()) return {Transport::host, Transport::gloo};
  WARN("gloo is skipped: this is a build without it");
  return {Transport::host};
}

/// Calls `work` with each rank of a group, in a thread of its own. Returns the message of each rank's error; empty if
/// it had none. Checks of Catch2 belong behind it: they are for one thread.
inline std::vector<std::string> on_ranks(int size, const std::function<void(const collective::GroupPtr&)>& work,
                                         std::chrono::duration<double> deadline = std::chrono::seconds(60),
                                         Transport transport = Transport::host) {
  const collective::StoreServer server("127.0.0.1", 0);
  std::vector<collective::GroupPtr> groups(static_cast<std::size_t>(size));
  if (transport == Transport::host) groups = collective::make_groups_of_threads(size, deadline);
  std::vector<std::string> errors(groups.size());
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < groups.size(); ++rank) {
    threads.emplace_back([&, rank] {
      try {
        if (transport == Transport::gloo) {
          groups[rank] = make_gloo_group(std::make_shared<collective::Store>("127.0.0.1", server.port(), deadline),
                                         {.rank = static_cast<int>(rank),
                                          .size = size,
                                          .address = "127.0.0.1",
                                          .connections = 2,
                                          .deadline = deadline,
                                          .prefix = "gloo/"});
        }
        work(groups[rank]);
      } catch (const std::exception& error) {
        errors[rank] = error.what();
      }
      groups[rank].reset();  // it leaves
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

}  // namespace concord::test
