// One value of each rank. Internal to the library.
#pragma once

#include <cstddef>
#include <span>
#include <type_traits>
#include <vector>

#include "concord/collective/group.hpp"

namespace concord::collective {

/// The values of all ranks, by rank. All call it together. Throws RankLost.
template <class T>
requires std::is_trivially_copyable_v<T> std::vector<T> gathered(Group& group, const T& own) {
  std::vector<T> all(static_cast<std::size_t>(group.size()));
  all[static_cast<std::size_t>(group.rank())] = own;
  group.all_gather(std::as_writable_bytes(std::span(all)), sizeof(T));
  return all;
}

}  // namespace concord::collective
