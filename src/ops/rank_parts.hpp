// Parts of a value that ranks have. Internal to the library.
#pragma once

#include "concord/graph/graph.hpp"

namespace concord {

/// Returns the parts of all ranks side by side along `axis`, which then has `size` places. x, of this rank, lies from
/// place `begin` on; together the parts fill the axis. Throws ShapeError unless x is f32.
[[nodiscard]] Value all_gather_parts(Value x, std::size_t axis, std::int64_t begin, std::int64_t size);

}  // namespace concord
