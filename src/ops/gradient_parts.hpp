// Gradients of variables in parts, by the nodes that read them. Internal to the library.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "concord/graph/graph.hpp"

namespace concord {

/// The number of the part to which a node adds, which reads a variable.
using PartOfReader = std::function<int(std::int32_t reader)>;

/// As gradient(): for each value of wrt the parts of its gradient, by their numbers. Their sum is the gradient, which
/// is 0 if there are none. A value that is no variable has one part, 0.
[[nodiscard]] std::vector<std::map<int, Value>> gradient_in_parts(Value loss, std::span<const Value> wrt,
                                                                  const PartOfReader& part_of);

}  // namespace concord
