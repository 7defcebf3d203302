// What the language models are made of. Used by src/models alone.
#pragma once

#include "concord/models/blocks.hpp"
#include "concord/nn/embedding.hpp"
#include "concord/nn/layer_norm.hpp"
#include "concord/ops/attention.hpp"

namespace concord::models {

/// A table of words with normal first values.
[[nodiscard]] nn::Embedding embedding(std::int64_t words, std::int64_t width, double deviation);

/// A Linear with normal weights of deviation 0.02 and a bias of 0.
[[nodiscard]] nn::Linear narrow_linear(std::int64_t in, std::int64_t out);

/// q, k, v (N, T, width) → (N, T, width): scaled dot-product attention of each head (Vaswani et al., "Attention Is All
/// You Need", 2017). Dropout is of the attention weights. In a training that divides layers, q, k and v have the
/// columns of this device's heads. `mask` f32 (N, 1, 1|T, T) is added to the scores, if given.
[[nodiscard]] Value attend(Value q, Value k, Value v, std::int64_t heads, ops::Causal causal, float dropout,
                           Value mask = {});

/// The three thirds of the last dimension.
[[nodiscard]] std::array<Value, 3> thirds(Value x);

}  // namespace concord::models
