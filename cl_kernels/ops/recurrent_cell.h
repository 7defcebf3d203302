// What the kernels of a recurrent layer's time steps share. CELL_LSTM, CELL_GRU, or RNN=concord_rnn_tanh or
// concord_rnn_relu; with LENGTHS sequences end where they say. Time-major tensors are (steps, batch, …); the state of a
// sequence that has not begun or is over stays as it is. A length outside [1, steps] gives NaN. is_first: the first
// launch of the pass.
#ifndef CONCORD_RECURRENT_CELL_H
#define CONCORD_RECURRENT_CELL_H

#include "ops/recurrent.h"

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
// Time-major operands: an output may lie where an input does, since an item reads its places before it writes them.
#define IN_SEQUENCE(name) __global const float *name, ulong name##_offset
#define OUT_SEQUENCE(name) __global float *name, ulong name##_offset
#ifdef LENGTHS
#define LENGTHS_PARAMETER __global const int *restrict lengths, ulong lengths_offset,
#define LENGTH_OF(n) lengths[lengths_offset + (n)]
#else
#define LENGTHS_PARAMETER
#define LENGTH_OF(n) (int)steps
#endif

// What an item knows of unit j of sequence n: its places in states (batch, hidden), in time-major rows, in
// (…, gates·hidden) and in (…, saved·hidden); whether the sequence runs at step t; what stands where it does not.
#define PLACES                                                                               \
  const ulong width = hidden, row = (ulong)t * batch + n;                                    \
  const ulong state = n * width + j, place = row * width + j;                                \
  const ulong gate_place = row * (GATES * width) + j, saved_place = row * (SAVED * width) + j; \
  const int length = LENGTH_OF(n);                                                           \
  const int is_valid = length >= 1 && length <= (int)steps, runs = is_valid && (int)t < length; \
  const float idle = is_valid ? 0.0f : NAN

// The operands of a forward step beside its products: what the cell keeps.
#if defined(CELL_LSTM)
#define CELL_PARAMETERS , IN(c0), OUT(cn), OUT_SEQUENCE(gates), OUT_SEQUENCE(cells)
#elif defined(CELL_GRU)
#define CELL_PARAMETERS , IN(bias), OUT_SEQUENCE(gates)
#else
#define CELL_PARAMETERS
#endif

// After PLACES: from the products p[GATES] of the state h with the weights to the results of a step and *to_h.
#if defined(CELL_LSTM)
#define ADVANCE_CELL(p, h)                                                                                      \
  cn += cn_offset + state;                                                                                      \
  gates += gates_offset + saved_place;                                                                          \
  const float c = is_first ? c0[c0_offset + state] : *cn;                                                       \
  const concord_lstm s = concord_lstm_forward(gates_x[0] + p[0], gates_x[width] + p[1], gates_x[2 * width] + p[2], \
                                              gates_x[3 * width] + p[3], c);                                    \
  const float new_h = s.h;                                                                                      \
  *cn = runs ? s.c : c + idle;                                                                                  \
  cells[cells_offset + place] = runs ? s.c : 0.0f;                                                              \
  gates[0] = runs ? s.i : 0.0f;                                                                                 \
  gates[width] = runs ? s.f : 0.0f;                                                                             \
  gates[2 * width] = runs ? s.g : 0.0f;                                                                         \
  gates[3 * width] = runs ? s.o : 0.0f
#elif defined(CELL_GRU)
#define ADVANCE_CELL(p, h)                                                                                      \
  gates += gates_offset + saved_place;                                                                          \
  bias += bias_offset + j;                                                                                      \
  const float hidden_n = p[2] + bias[2 * width];                                                                \
  const concord_gru s = concord_gru_forward(gates_x[0] + (p[0] + bias[0]), gates_x[width] + (p[1] + bias[width]), \
                                            gates_x[2 * width], hidden_n, h);                                   \
  const float new_h = s.h;                                                                                      \
  gates[0] = runs ? s.r : 0.0f;                                                                                 \
  gates[width] = runs ? s.z : 0.0f;                                                                             \
  gates[2 * width] = runs ? s.n : 0.0f;                                                                         \
  gates[3 * width] = runs ? hidden_n : 0.0f
#else
#define ADVANCE_CELL(p, h) const float new_h = JOIN(RNN, _forward)(gates_x[0] + p[0])
#endif
#define ADVANCE(p, h, to_h)                      \
  gates_x += gates_x_offset + gate_place;        \
  ADVANCE_CELL(p, h);                            \
  y[y_offset + place] = runs ? new_h : idle;     \
  *(to_h) = runs ? new_h : h + idle

#endif
