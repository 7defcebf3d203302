// One step of the recurrent cells for one hidden unit, and its gradient. Compiles as OpenCL C and as C++; used by
// ops/recurrent.cl and cpu/recurrent_rows.cpp. Gates come in PyTorch's order: LSTM i, f, g, o; GRU r, z, n.
#ifndef CONCORD_RECURRENT_H
#define CONCORD_RECURRENT_H

#include "shared/formulas.h"

typedef struct {
  float i, f, g, o;  // forward: after their activation; gradient: with respect to the sums before it
  float c, h;        // forward: new states; gradient: c with respect to the old state, h unused
} concord_lstm;

// Hochreiter and Schmidhuber, "Long Short-Term Memory", 1997, with the forget gate of Gers et al., 2000.
CONCORD_INLINE concord_lstm concord_lstm_forward(float i, float f, float g, float o, float c) {
  concord_lstm s;
  s.i = concord_sigmoid(i);
  s.f = concord_sigmoid(f);
  s.g = concord_tanh(g);
  s.o = concord_sigmoid(o);
  s.c = s.f * c + s.i * s.g;
  s.h = s.o * concord_tanh(s.c);
  return s;
}

// From activated gates, the states before (c) and after (new_c), and the gradients of the new states.
CONCORD_INLINE concord_lstm concord_lstm_backward(float i, float f, float g, float o, float c, float new_c, float diff_h,
                                                 float diff_c) {
  const float t = concord_tanh(new_c);
  const float inner = diff_c + diff_h * o * ((1.0f - t) * (1.0f + t));
  concord_lstm d;
  d.i = inner * g * i * (1.0f - i);
  d.f = inner * c * f * (1.0f - f);
  d.g = inner * i * ((1.0f - g) * (1.0f + g));
  d.o = diff_h * t * o * (1.0f - o);
  d.c = inner * f;
  d.h = 0.0f;
  return d;
}

typedef struct {
  float r, z, n;  // as in concord_lstm
  float h;        // forward: the new state; gradient: the part for the old state that passes through no gate
} concord_gru;

// Cho et al., "Learning Phrase Representations using RNN Encoder-Decoder", 2014, in cuDNN's and PyTorch's form: the reset
// gate acts on the candidate's hidden part, `hidden_n`, after its product. r, z: sums of both parts.
CONCORD_INLINE concord_gru concord_gru_forward(float r, float z, float n, float hidden_n, float h) {
  concord_gru s;
  s.r = concord_sigmoid(r);
  s.z = concord_sigmoid(z);
  s.n = concord_tanh(n + s.r * hidden_n);
  s.h = (1.0f - s.z) * s.n + s.z * h;
  return s;
}

// The gradient of the candidate's hidden part is d.n * r.
CONCORD_INLINE concord_gru concord_gru_backward(float r, float z, float n, float hidden_n, float h, float diff_h) {
  concord_gru d;
  d.n = diff_h * (1.0f - z) * ((1.0f - n) * (1.0f + n));
  d.z = diff_h * (h - n) * z * (1.0f - z);
  d.r = d.n * hidden_n * r * (1.0f - r);
  d.h = diff_h * z;
  return d;
}

// Elman, "Finding Structure in Time", 1990. The gradients are written in terms of the new state.
CONCORD_INLINE float concord_rnn_tanh_forward(float sum) { return concord_tanh(sum); }
CONCORD_INLINE float concord_rnn_tanh_backward(float h, float diff_h) { return diff_h * ((1.0f - h) * (1.0f + h)); }
CONCORD_INLINE float concord_rnn_relu_forward(float sum) { return concord_maximum(sum, 0.0f); }
CONCORD_INLINE float concord_rnn_relu_backward(float h, float diff_h) { return h > 0.0f ? diff_h : 0.0f; }

#endif
