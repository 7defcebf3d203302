// One time step of a recurrent layer: everything between two products. A work-item owns one hidden unit of one sequence
// (global size hidden x batch). CELL_LSTM, CELL_GRU, or RNN=concord_rnn_tanh or concord_rnn_relu; with LENGTHS sequences
// end where they say. Time-major tensors are (steps, batch, …); the state of a sequence that has not begun or is over
// stays as it is. A length outside [1, steps] gives NaN. is_first: the first launch of the pass. An LSTM's item moves 72
// bytes in either direction.
#include "recurrent.h"

#if defined(CELL_LSTM)
#define GATES 4
#elif defined(CELL_GRU)
#define GATES 3
#else
#define GATES 1
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#endif
#define SAVED 4

#define IN(name) __global const float *restrict name, ulong name##_offset
#define OUT(name) __global float *restrict name, ulong name##_offset
#ifdef LENGTHS
#define LENGTHS_PARAMETER __global const int *restrict lengths, ulong lengths_offset,
#define LENGTH_OF(n) lengths[lengths_offset + (n)]
#else
#define LENGTHS_PARAMETER
#define LENGTH_OF(n) (int)steps
#endif
#define SIZES uint batch, uint hidden, uint steps, uint t, uint parts

// One value of a product that stands in `parts` matrices, `distance` elements apart.
static inline float sum_of(__global const float *product, uint parts, ulong distance) {
  float sum = product[0];
  for (uint i = 1; i < parts; ++i) sum += product[i * distance];
  return sum;
}

// What every item knows: its unit j and sequence n, its places in states (batch, hidden), in time-major rows, in
// (…, gates·hidden) and in (…, saved·hidden); whether the sequence runs at step t; what stands where it does not.
#define PLACES                                                                               \
  const uint j = (uint)get_global_id(0), n = (uint)get_global_id(1);                         \
  if (j >= hidden) return;                                                                   \
  const ulong width = hidden, row = (ulong)t * batch + n;                                    \
  const ulong state = n * width + j, place = row * width + j;                                \
  const ulong gate_place = row * (GATES * width) + j, saved_place = row * (SAVED * width) + j; \
  const int length = LENGTH_OF(n);                                                           \
  const int is_valid = length >= 1 && length <= (int)steps, runs = is_valid && (int)t < length; \
  const float idle = is_valid ? 0.0f : NAN

__kernel void recurrent_forward(IN(gates_x), IN(product), IN(h0), LENGTHS_PARAMETER OUT(y), OUT(hn),
#if defined(CELL_LSTM)
                                IN(c0), OUT(cn), OUT(gates), OUT(cells),
#elif defined(CELL_GRU)
                                IN(bias), OUT(gates),
#endif
                                SIZES, uint is_first) {
  PLACES;
  gates_x += gates_x_offset + gate_place;
  product += product_offset + n * (GATES * width) + j;
  float p[GATES];
#pragma unroll
  for (uint gate = 0; gate < GATES; ++gate) p[gate] = sum_of(product + gate * width, parts, batch * (GATES * width));
  hn += hn_offset + state;
  const float h = is_first ? h0[h0_offset + state] : *hn;
  float new_h;
#if defined(CELL_LSTM)
  cn += cn_offset + state;
  gates += gates_offset + saved_place;
  const float c = is_first ? c0[c0_offset + state] : *cn;
  const concord_lstm s = concord_lstm_forward(gates_x[0] + p[0], gates_x[width] + p[1], gates_x[2 * width] + p[2],
                                              gates_x[3 * width] + p[3], c);
  new_h = s.h;
  *cn = runs ? s.c : c + idle;
  cells[cells_offset + place] = runs ? s.c : 0.0f;
  gates[0] = runs ? s.i : 0.0f;
  gates[width] = runs ? s.f : 0.0f;
  gates[2 * width] = runs ? s.g : 0.0f;
  gates[3 * width] = runs ? s.o : 0.0f;
#elif defined(CELL_GRU)
  gates += gates_offset + saved_place;
  bias += bias_offset + j;
  const float hidden_n = p[2] + bias[2 * width];
  const concord_gru s = concord_gru_forward(gates_x[0] + (p[0] + bias[0]), gates_x[width] + (p[1] + bias[width]),
                                            gates_x[2 * width], hidden_n, h);
  new_h = s.h;
  gates[0] = runs ? s.r : 0.0f;
  gates[width] = runs ? s.z : 0.0f;
  gates[2 * width] = runs ? s.n : 0.0f;
  gates[3 * width] = runs ? hidden_n : 0.0f;
#else
  new_h = JOIN(RNN, _forward)(gates_x[0] + p[0]);
#endif
  y[y_offset + place] = runs ? new_h : idle;
  *hn = runs ? new_h : h + idle;
}

// product: what the step run before passed back through the weights. diff_h0 and diff_c0 hold the gradients of the states
// after step t, and then those before it but for this step's own product.
__kernel void recurrent_backward(IN(diff_y), IN(diff_hn), IN(product), IN(h0), IN(y), LENGTHS_PARAMETER OUT(diff_gates),
                                 OUT(diff_h0), OUT(previous),
#if defined(CELL_LSTM)
                                 IN(diff_cn), IN(c0), IN(gates), IN(cells), OUT(diff_c0),
#elif defined(CELL_GRU)
                                 IN(gates), OUT(diff_hidden),
#endif
                                 SIZES, uint is_first, uint is_reverse) {
  PLACES;
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
