// The transport `gloo`: TCP connections between machines, by the library Gloo. Internal to the library.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "concord/collective/group.hpp"
#include "concord/collective/store.hpp"

namespace concord::collective {

/// Whether this library was built with Gloo.
[[nodiscard]] bool has_gloo();

struct GlooOptions {
  int rank = 0, size = 1;
  std::string address;  // of this machine, as numbers, by which the other ranks reach it
  /// Connections to each other rank: one does not fill a fast link. The same on all ranks.
  int connections = 1;
  std::chrono::duration<double> deadline{};
  std::string prefix;  // of the group's names in the store; another one for each group
};

/// GlooOptions::prefix of the group with which a training starts.
inline constexpr const char* kFirstGroup = "gloo/";

/// A rank of a group over TCP, which can go on without others while the machine of the store is there. Blocks until all
/// ranks are connected. Throws RankLost if one of them does not come within the deadline, and NotSupported without
/// Gloo.
[[nodiscard]] GroupPtr make_gloo_group(std::shared_ptr<Store> store, const GlooOptions& options);

}  // namespace concord::collective
