// Blocking and Chunking: how elementwise kernels cut a range of elements into work-groups. Used by pointwise, copy,
// random, gather.
#pragma once

#include <cstddef>

#include "concord/opencl/launch/context.hpp"
#include "concord/opencl/launch/stage.hpp"

namespace concord::opencl {

/// A work-group of `local` items owns per_item · local neighbouring elements.
struct Blocking {
  std::size_t per_item, local, groups;

  /// "PER_ITEM=4", for the program.
  [[nodiscard]] std::string definition() const;
  /// Sets the sizes of a one-dimensional launch.
  void apply(Stage& stage) const;
};
/// `gpu_per_item` elements an item on GPUs, one on CPUs.
[[nodiscard]] Blocking blocking_of(const Limits& limits, std::int64_t elements, std::size_t gpu_per_item = 4);

/// On CPUs: `items` work-items, alone in their groups, own `chunk` neighbouring elements each.
struct Chunking {
  std::int64_t chunk;
  std::size_t items;

  void apply(Stage& stage) const;
};
[[nodiscard]] Chunking chunking_of(const Limits& limits, std::int64_t elements);

}  // namespace concord::opencl
