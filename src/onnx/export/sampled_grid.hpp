// Grid samples of a traced graph, which are compositions of gathers and formulas, for the GridSample of ONNX. Internal
// to the export.
#pragma once

#include <optional>

#include "concord/ops/grid_sample.hpp"

namespace concord::onnx {

/// The operands of a grid sample.
struct SampledGrid {
  Value x, grid;
  GridSampleOptions options;
};
/// `value` as the reshape that a grid sample ends with; nothing where it is another value, or where this version of
/// ONNX's operators has no GridSample of such images.
[[nodiscard]] std::optional<SampledGrid> sampled_grid(const Value& value, int opset);

}  // namespace concord::onnx
