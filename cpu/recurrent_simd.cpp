// One time step of one sequence, by the formulas of recurrent.h.
#include "recurrent_simd.hpp"

#include "ops/recurrent.h"

namespace concord::cpu {
namespace {

using Cell = ops::RecurrentCell;

// Inlined by force, so that the loops become part of each version of the function that calls them.
template <class Function>
[[gnu::always_inline]] inline void rnn_step(const UnitRange& units, const RecurrentStep& s, Function function) {
  const float *x = s.gates_x, *p = s.product;
  float *y = s.y, *hn = s.hn;
#pragma omp simd
  for (std::int64_t j = units.begin; j < units.end; ++j) y[j] = hn[j] = function(x[j] + p[j]);
}

[[gnu::always_inline]] inline void lstm_step(const UnitRange& units, const RecurrentStep& s) {
  const std::int64_t n = units.row, m = s.product_gate;
  const float *x = s.gates_x, *p = s.product, *c = s.c;
  float *y = s.y, *hn = s.hn, *cn = s.cn, *gates = s.gates, *cells = s.cells;
#pragma omp simd
  for (std::int64_t j = units.begin; j < units.end; ++j) {
    const concord_lstm r = concord_lstm_forward(x[j] + p[j], x[j + n] + p[j + m], x[j + 2 * n] + p[j + 2 * m],
                                                x[j + 3 * n] + p[j + 3 * m], c[j]);
    gates[j] = r.i;
    gates[j + n] = r.f;
    gates[j + 2 * n] = r.g;
    gates[j + 3 * n] = r.o;
    cells[j] = cn[j] = r.c;
    y[j] = hn[j] = r.h;
  }
}

[[gnu::always_inline]] inline void gru_step(const UnitRange& units, const RecurrentStep& s) {
  const std::int64_t n = units.row, m = s.product_gate;
  const float *x = s.gates_x, *p = s.product, *b = s.bias, *h = s.h;
  float *y = s.y, *hn = s.hn, *gates = s.gates;
#pragma omp simd
  for (std::int64_t j = units.begin; j < units.end; ++j) {
    const float hidden_n = p[j + 2 * m] + b[j + 2 * n];
    const concord_gru r =
        concord_gru_forward(x[j] + (p[j] + b[j]), x[j + n] + (p[j + m] + b[j + n]), x[j + 2 * n], hidden_n, h[j]);
    gates[j] = r.r;
    gates[j + n] = r.z;
    gates[j + 2 * n] = r.n;
    gates[j + 3 * n] = hidden_n;
    y[j] = hn[j] = r.h;
  }
}

template <class Function>
[[gnu::always_inline]] inline void rnn_backward(const UnitRange& units, const RecurrentStepBackward& s,
                                                Function function) {
  const float *diff_y = s.diff_y, *carried = s.carried, *y = s.y;
  float *gates = s.diff_gates, *diff_h = s.diff_h;
#pragma omp simd
  for (std::int64_t j = units.begin; j < units.end; ++j) {
    gates[j] = function(y[j], diff_y[j] + carried[j]);
    diff_h[j] = 0.0F;
  }
}

[[gnu::always_inline]] inline void lstm_backward(const UnitRange& units, const RecurrentStepBackward& s) {
  const std::int64_t n = units.row;
  const float *diff_y = s.diff_y, *carried = s.carried, *carried_c = s.carried_c, *c = s.c, *cells = s.cells,
              *gates = s.gates;
  float *diff = s.diff_gates, *diff_h = s.diff_h, *diff_c = s.diff_c;
#pragma omp simd
  for (std::int64_t j = units.begin; j < units.end; ++j) {
    const concord_lstm d = concord_lstm_backward(gates[j], gates[j + n], gates[j + 2 * n], gates[j + 3 * n], c[j],
                                                 cells[j], diff_y[j] + carried[j], carried_c[j]);
    diff[j] = d.i;
    diff[j + n] = d.f;
    diff[j + 2 * n] = d.g;
    diff[j + 3 * n] = d.o;
    diff_c[j] = d.c;
    diff_h[j] = 0.0F;
  }
}

[[gnu::always_inline]] inline void gru_backward(const UnitRange& units, const RecurrentStepBackward& s) {
  const std::int64_t n = units.row;
  const float *diff_y = s.diff_y, *carried = s.carried, *h = s.h, *gates = s.gates;
  float *diff = s.diff_gates, *hidden = s.diff_hidden, *diff_h = s.diff_h;
#pragma omp simd
  for (std::int64_t j = units.begin; j < units.end; ++j) {
    const float r = gates[j];
    const concord_gru d =
        concord_gru_backward(r, gates[j + n], gates[j + 2 * n], gates[j + 3 * n], h[j], diff_y[j] + carried[j]);
    diff[j] = hidden[j] = d.r;
    diff[j + n] = hidden[j + n] = d.z;
    diff[j + 2 * n] = d.n;
    hidden[j + 2 * n] = d.n * r;
    diff_h[j] = d.h;
  }
}

}  // namespace

CONCORD_SIMD void recurrent_step(Cell cell, const UnitRange& units, const RecurrentStep& s) {
  switch (cell) {
    case Cell::rnn_tanh:
      return rnn_step(
          units, s, [](float sum) __attribute__((always_inline)) { return concord_rnn_tanh_forward(sum); });
    case Cell::rnn_relu:
      return rnn_step(
          units, s, [](float sum) __attribute__((always_inline)) { return concord_rnn_relu_forward(sum); });
    case Cell::lstm: return lstm_step(units, s);
    case Cell::gru: return gru_step(units, s);
  }
}

CONCORD_SIMD void recurrent_step_backward(Cell cell, const UnitRange& units, const RecurrentStepBackward& s) {
  switch (cell) {
    case Cell::rnn_tanh:
      return rnn_backward(
          units, s,
          [](float h, float diff) __attribute__((always_inline)) { return concord_rnn_tanh_backward(h, diff); });
    case Cell::rnn_relu:
      return rnn_backward(
          units, s,
          [](float h, float diff) __attribute__((always_inline)) { return concord_rnn_relu_backward(h, diff); });
    case Cell::lstm: return lstm_backward(units, s);
    case Cell::gru: return gru_backward(units, s);
  }
}

}  // namespace concord::cpu
