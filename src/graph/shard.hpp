// Parts of parameters that ranks hold, and the whole parameters in files. Internal to the library.
#pragma once

#include "concord/core/tensor.hpp"
#include "concord/graph/graph.hpp"

namespace concord {

/// Throws ShapeError unless the dimension can be divided so.
[[nodiscard]] Shape part_of(const Shape& whole, const Shard& shard);
[[nodiscard]] TensorSpec whole_of(const TensorSpec& part, const Shard& shard);
/// The values of a rank's part.
[[nodiscard]] Tensor part_of(const Tensor& whole, const Shard& shard);
/// Puts the values of a rank's part where they belong.
void put_part(Tensor& whole, const Tensor& part, const Shard& shard);

}  // namespace concord
