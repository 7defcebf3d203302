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
#define PLACES \
  const ulong width = hidden, row = (ulong)t * batch + n; \
  const ulong state = n * width + j, place = row * width + j; \
  const ulong gate_place = row * (GATES * width) + j, saved_place = row * (SAVED * width) + j; \
  const int length = LENGTH_OF(n); \
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

// After PLACES. ADVANCE_CELL: from a step's inputs x[GATES], the products p[GATES] of the state h with the weights, and an
// LSTM's cell state c to the new state NEW_H. KEEP_CELL stores what the cell keeps.
#if defined(CELL_LSTM)
#define CELL_STATE(is_first) ((is_first) ? c0[c0_offset + state] : cn[cn_offset + state])
#define ADVANCE_CELL(x, p, h, c) \
  const concord_lstm s = concord_lstm_forward(x[0] + p[0], x[1] + p[1], x[2] + p[2], x[3] + p[3], c)
#define NEW_H s.h
#define KEEP_CELL(c) \
  { \
    __global float *const kept = gates + gates_offset + saved_place; \
    cn[cn_offset + state] = runs ? s.c : c + idle; \
    cells[cells_offset + place] = runs ? s.c : 0.0f; \
    kept[0] = runs ? s.i : 0.0f; \
    kept[width] = runs ? s.f : 0.0f; \
    kept[2 * width] = runs ? s.g : 0.0f; \
    kept[3 * width] = runs ? s.o : 0.0f; \
  }
#elif defined(CELL_GRU)
#define CELL_STATE(is_first) 0.0f
#define BIAS(gate) bias[bias_offset + (gate)*width + j]
#define ADVANCE_CELL(x, p, h, c) \
  const float hidden_n = p[2] + BIAS(2); \
  const concord_gru s = concord_gru_forward(x[0] + (p[0] + BIAS(0)), x[1] + (p[1] + BIAS(1)), x[2], hidden_n, h)
#define NEW_H s.h
#define KEEP_CELL(c) \
  { \
    __global float *const kept = gates + gates_offset + saved_place; \
    kept[0] = runs ? s.r : 0.0f; \
    kept[width] = runs ? s.z : 0.0f; \
    kept[2 * width] = runs ? s.n : 0.0f; \
    kept[3 * width] = runs ? hidden_n : 0.0f; \
  }
#else
#define CELL_STATE(is_first) 0.0f
#define ADVANCE_CELL(x, p, h, c) const float rnn_h = JOIN(RNN, _forward)(x[0] + p[0])
#define NEW_H rnn_h
#define KEEP_CELL(c)
#endif
#define READ_GATES_X(x) \
  float x[GATES]; \
  _Pragma("unroll") for (uint gate = 0; gate < GATES; ++gate) x[gate] = gates_x[gates_x_offset + gate_place + gate * width]
#define ADVANCE(p, h, to_h) \
  READ_GATES_X(x); \
  const float c = CELL_STATE(is_first); \
  ADVANCE_CELL(x, p, h, c); \
  KEEP_CELL(c); \
  y[y_offset + place] = runs ? NEW_H : idle; \
  *(to_h) = runs ? NEW_H : h + idle

// The operands of a backward step beside what its products pass back.
#if defined(CELL_LSTM)
#define BACK_PARAMETERS \
  IN(diff_cn), IN(c0), IN_SEQUENCE(gates), IN_SEQUENCE(cells), OUT(diff_c0),
#elif defined(CELL_GRU)
#define BACK_PARAMETERS IN_SEQUENCE(gates), OUT_SEQUENCE(diff_hidden),
#else
#define BACK_PARAMETERS
#endif

// After PLACES. READ_BACK reads what a step back needs; RETREAT goes back from the gradient diff_h of the state after the
// step: hidden_part[GATES] is the gradient of the products with the weights, `passed` that of the state before the step but
// for those products. KEEP_BACK stores what they are.
#define READ_BACK(is_first, is_reverse) \
  const int is_start = (is_reverse) ? (int)t == length - 1 : t == 0; \
  /* The step before this one in the order of the pass; read only where there is one. */ \
  const ulong before = (is_reverse) ? place + batch * width : place - batch * width; \
  const float h = is_start || !runs ? h0[h0_offset + state] : y[y_offset + before]; \
  const float own_diff = diff_y[diff_y_offset + place]; \
  READ_KEPT(is_first)
#if defined(CELL_LSTM)
#define READ_KEPT(is_first) \
  READ_SAVED(4); \
  const float c = is_start || !runs ? c0[c0_offset + state] : cells[cells_offset + before]; \
  const float new_c = cells[cells_offset + place]; \
  const float diff_c = (is_first) ? diff_cn[diff_cn_offset + state] : diff_c0[diff_c0_offset + state]
#define RETREAT(diff_h) \
  const concord_lstm d = concord_lstm_backward(saved[0], saved[1], saved[2], saved[3], c, new_c, diff_h, diff_c); \
  const float passed = 0.0f; \
  const float hidden_part[GATES] = {runs ? d.i : idle, runs ? d.f : idle, runs ? d.g : idle, runs ? d.o : idle}
#define KEEP_GATES \
  diff_c0[diff_c0_offset + state] = runs ? d.c : diff_c + idle; \
  STORE_GATES(diff_gates, hidden_part)
#elif defined(CELL_GRU)
#define READ_KEPT(is_first) READ_SAVED(4)
#define RETREAT(diff_h) \
  const concord_gru d = concord_gru_backward(saved[0], saved[1], saved[2], saved[3], h, diff_h); \
  const float passed = d.h, r = saved[0]; \
  const float hidden_part[GATES] = {runs ? d.r : idle, runs ? d.z : idle, runs ? d.n * r : idle}
#define KEEP_GATES \
  const float input_part[GATES] = {hidden_part[0], hidden_part[1], runs ? d.n : idle}; \
  STORE_GATES(diff_gates, input_part); \
  STORE_GATES(diff_hidden, hidden_part)
#else
#define READ_KEPT(is_first) const float new_h = y[y_offset + place]
#define RETREAT(diff_h) \
  const float passed = 0.0f; \
  const float hidden_part[GATES] = {runs ? JOIN(RNN, _backward)(new_h, diff_h) : idle}
#define KEEP_GATES STORE_GATES(diff_gates, hidden_part)
#endif
#define READ_SAVED(count) \
  float saved[count]; \
  _Pragma("unroll") for (uint i = 0; i < (count); ++i) saved[i] = gates[gates_offset + saved_place + i * width]
#define STORE_GATES(to, values) \
  _Pragma("unroll") for (uint gate = 0; gate < GATES; ++gate) to[to##_offset + gate_place + gate * width] = (values)[gate]
#define KEEP_BACK \
  KEEP_GATES; \
  previous[previous_offset + place] = runs ? h : idle

#endif
