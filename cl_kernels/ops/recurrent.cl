// One time step of a recurrent layer: everything between two products. A work-item owns one hidden unit of one sequence
// (global size hidden x batch). An LSTM's item moves 72 bytes in either direction.
#include "ops/recurrent_cell.h"

#define SIZES uint batch, uint hidden, uint steps, uint t, uint parts
#define ITEM                                                   \
  const uint j = (uint)get_global_id(0), n = (uint)get_global_id(1); \
  if (j >= hidden) return;                                     \
  PLACES

// One value of a product that stands in `parts` matrices, `distance` elements apart.
static inline float sum_of(__global const float *product, uint parts, ulong distance) {
  float sum = product[0];
  for (uint i = 1; i < parts; ++i) sum += product[i * distance];
  return sum;
}

__kernel void recurrent_forward(IN_SEQUENCE(gates_x), IN(product), IN(h0), LENGTHS_PARAMETER OUT_SEQUENCE(y),
                                OUT(hn) CELL_PARAMETERS, SIZES, uint is_first) {
  ITEM;
  product += product_offset + n * (GATES * width) + j;
  float p[GATES];
#pragma unroll
  for (uint gate = 0; gate < GATES; ++gate) p[gate] = sum_of(product + gate * width, parts, batch * (GATES * width));
  hn += hn_offset + state;
  const float old_h = is_first ? h0[h0_offset + state] : *hn;
  ADVANCE(p, old_h, hn);
}

// product: what the step run before passed back through the weights. diff_h0 and diff_c0 hold the gradients of the states
// after step t, and then those before it but for this step's own product.
__kernel void recurrent_backward(IN_SEQUENCE(diff_y), IN(diff_hn), IN(product), IN(h0), IN_SEQUENCE(y),
                                 LENGTHS_PARAMETER OUT_SEQUENCE(diff_gates), OUT(diff_h0), OUT_SEQUENCE(previous),
                                 BACK_PARAMETERS SIZES, uint is_first, uint is_reverse) {
  ITEM;
  diff_h0 += diff_h0_offset + state;
  product += product_offset + state;
  const float carried = is_first ? diff_hn[diff_hn_offset + state] : *diff_h0 + sum_of(product, parts, batch * width);
  READ_BACK(is_first, is_reverse);
  RETREAT(own_diff + carried);
  KEEP_BACK;
  *diff_h0 = runs ? passed : carried + idle;
}

// The last step's product joins the gradient of the first state.
__kernel void recurrent_finish(IN(product), OUT(diff_h0), uint elements, uint parts) {
  const uint i = (uint)get_global_id(0);
  if (i < elements) diff_h0[diff_h0_offset + i] += sum_of(product + product_offset + i, parts, elements);
}
