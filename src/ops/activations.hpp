// Less common activations of PyTorch, elementwise unless stated otherwise. ops/pointwise.hpp has the common ones.
#pragma once

#include "concord/core/export.hpp"
#include "concord/graph/graph.hpp"

namespace CONCORD_PUBLIC concord {

/// x clamped to [low, high]. The gradient is 0 outside and at both ends.
Value hardtanh(Value x, float low = -1, float high = 1);
inline Value relu6(Value x) { return hardtanh(x, 0, 6); }
/// SELU (Klambauer et al., "Self-Normalizing Neural Networks", 2017).
Value selu(Value x);
/// max(0, x) + min(0, alpha·(exp(x/alpha) − 1)) (Barron, "Continuously Differentiable Exponential Linear Units", 2017).
Value celu(Value x, float alpha = 1);
/// x·tanh(softplus(x)) (Misra, "Mish", 2019).
Value mish(Value x);
/// log σ(x), without overflow.
Value log_sigmoid(Value x);
/// x/(1 + |x|).
Value softsign(Value x);
/// x for x > 0, else slope·x; the slope broadcasts to x (He et al., "Delving Deep into Rectifiers", 2015).
Value prelu(Value x, Value slope);
/// softmax(−x).
Value softmin(Value x, std::int64_t axis = -1);

// Gates: a and b are the halves of x along an axis of even size (Dauphin et al., "Language Modeling with Gated
// Convolutional Networks", 2017; Shazeer, "GLU Variants Improve Transformer", 2020).
/// a·σ(b).
Value glu(Value x, std::int64_t axis = -1);
/// silu(a)·b.
Value swiglu(Value x, std::int64_t axis = -1);

}  // namespace concord
