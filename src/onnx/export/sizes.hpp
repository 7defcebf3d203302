// The sizes of an exported graph: numbers, or multiples of a free batch, which two traces of different batches tell
// apart. Internal to the export.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "concord/graph/graph.hpp"

namespace concord::onnx {

/// `number`, or `number`·batch where the batch is free.
struct Size {
  std::int64_t number = 1;
  bool free = false;
  friend bool operator==(const Size&, const Size&) = default;
};
using Sizes = std::vector<Size>;

[[nodiscard]] Sizes fixed_sizes(const Shape& shape);
[[nodiscard]] bool is_fixed(const Sizes& sizes);
/// The shape of fixed sizes.
[[nodiscard]] Shape shape_of(const Sizes& sizes);
/// The sizes that both broadcast to, by NumPy's rules.
[[nodiscard]] Sizes broadcast(const Sizes& a, const Sizes& b);

/// The sizes of all values of a graph. A value whose sizes cannot follow the batch has a reason instead.
struct GraphSizes {
  struct Output {
    Sizes sizes;
    std::string reason = {};
  };
  std::vector<std::vector<Output>> nodes;  // by node, then by output
};
[[nodiscard]] GraphSizes sizes_of(const Graph& graph);
/// `a` is a trace with the batch `batch_a`, `b` one of the same network with `batch_b`. Throws NotSupported if the
/// network is another with another batch.
[[nodiscard]] GraphSizes sizes_of(const Graph& a, std::int64_t batch_a, const Graph& b, std::int64_t batch_b);

}  // namespace concord::onnx
