// The inner loops of the recurrent cells: one time step of one sequence, vectorised over its hidden units or some of
// them. Used by recurrent.
#pragma once

#include <cstdint>

#include "concord/ops/recurrent.hpp"

namespace concord::cpu {

/// Units begin … end of a row of `row`.
struct UnitRange {
  std::int64_t row, begin, end;
};

/// Rows of H units, of G·H in gates_x and bias, of 4·H in gates. Null where the cell has no such thing. hn and
/// cn may be h and c.
struct RecurrentStep {
  const float *gates_x, *product;
  std::int64_t product_gate;  // from a gate to the next in the product
  const float *bias, *h, *c;
  float *y, *hn, *cn, *gates, *cells;
};
void recurrent_step(ops::RecurrentCell cell, const UnitRange& units, const RecurrentStep& s);

/// y and cells are those after the step, h and c those before it. `carried` and `carried_c`, the gradients of the
/// states after the step, may be diff_h and diff_c, which take those before it, diff_h without what goes through the
/// product.
struct RecurrentStepBackward {
  const float *diff_y, *carried, *carried_c, *h, *c, *y, *cells, *gates;
  float *diff_gates, *diff_hidden, *diff_h, *diff_c;
};
void recurrent_step_backward(ops::RecurrentCell cell, const UnitRange& units, const RecurrentStepBackward& s);

}  // namespace concord::cpu
