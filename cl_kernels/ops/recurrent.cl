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
  const float h = is_first ? h0[h0_offset + state] : *hn;
  ADVANCE(p, h, hn);
}

// product: what the step run before passed back through the weights. diff_h0 and diff_c0 hold the gradients of the states
// after step t, and then those before it but for this step's own product.
__kernel void recurrent_backward(IN_SEQUENCE(diff_y), IN(diff_hn), IN(product), IN(h0), IN_SEQUENCE(y),
                                 LENGTHS_PARAMETER OUT_SEQUENCE(diff_gates), OUT(diff_h0), OUT_SEQUENCE(previous),
#if defined(CELL_LSTM)
                                 IN(diff_cn), IN(c0), IN_SEQUENCE(gates), IN_SEQUENCE(cells), OUT(diff_c0),
#elif defined(CELL_GRU)
                                 IN_SEQUENCE(gates), OUT_SEQUENCE(diff_hidden),
#endif
                                 SIZES, uint is_first, uint is_reverse) {
  ITEM;
  diff_gates += diff_gates_offset + gate_place;
  diff_h0 += diff_h0_offset + state;
  product += product_offset + state;
  const float carried = is_first ? diff_hn[diff_hn_offset + state] : *diff_h0 + sum_of(product, parts, batch * width);
  const int is_start = is_reverse ? (int)t == length - 1 : t == 0;
  // The step before this one in the order of the pass; read only where there is one.
  const ulong before = is_reverse ? place + batch * width : place - batch * width;
  const float h = is_start || !runs ? h0[h0_offset + state] : y[y_offset + before];
  const float diff_h = diff_y[diff_y_offset + place] + carried;
  float passed = 0.0f;
#if defined(CELL_LSTM)
  gates += gates_offset + saved_place;
  diff_c0 += diff_c0_offset + state;
  cells += cells_offset;
  const float c = is_start || !runs ? c0[c0_offset + state] : cells[before];
  const float diff_c = is_first ? diff_cn[diff_cn_offset + state] : *diff_c0;
  const concord_lstm d = concord_lstm_backward(gates[0], gates[width], gates[2 * width], gates[3 * width], c, cells[place],
                                               diff_h, diff_c);
  *diff_c0 = runs ? d.c : diff_c + idle;
  diff_gates[0] = runs ? d.i : idle;
  diff_gates[width] = runs ? d.f : idle;
  diff_gates[2 * width] = runs ? d.g : idle;
  diff_gates[3 * width] = runs ? d.o : idle;
#elif defined(CELL_GRU)
  gates += gates_offset + saved_place;
  diff_hidden += diff_hidden_offset + gate_place;
  const float r = gates[0];
  const concord_gru d = concord_gru_backward(r, gates[width], gates[2 * width], gates[3 * width], h, diff_h);
  passed = d.h;
  diff_gates[0] = diff_hidden[0] = runs ? d.r : idle;
  diff_gates[width] = diff_hidden[width] = runs ? d.z : idle;
  diff_gates[2 * width] = runs ? d.n : idle;
  diff_hidden[2 * width] = runs ? d.n * r : idle;
#else
  diff_gates[0] = runs ? JOIN(RNN, _backward)(y[y_offset + place], diff_h) : idle;
#endif
  previous[previous_offset + place] = runs ? h : idle;
  *diff_h0 = runs ? passed : carried + idle;
}

// The last step's product joins the gradient of the first state.
__kernel void recurrent_finish(IN(product), OUT(diff_h0), uint elements, uint parts) {
  const uint i = (uint)get_global_id(0);
  if (i < elements) diff_h0[diff_h0_offset + i] += sum_of(product + product_offset + i, parts, elements);
}
