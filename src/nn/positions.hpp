// Position embeddings of tokens: rotary, sinusoidal and learned. For attention layers.
#pragma once

#include "concord/core/export.hpp"
#include "concord/nn/module.hpp"

namespace CONCORD_PUBLIC concord {
namespace nn {

struct RotaryOptions {
  float base = 10000;
  /// true: pairs are the values 2i and 2i + 1, as in the paper. false: i and i + D/2, as in most later networks.
  bool interleaved = false;
  /// i32 [1]: the position of the first token. Empty: 0.
  Value offset = {};
};
/// Rotary position embedding of x (…, T, D), D even: rotates pair i of token t by the angle (t + offset)·base^(−2i/D),
/// so that the dot product of two tokens depends on their distance (Su et al., "RoFormer: Enhanced Transformer with
/// Rotary Position Embedding", 2021). Throws ShapeError for an odd D, or an offset that is not i32 [1].
[[nodiscard]] Value rotary(Value x, const RotaryOptions& options = {});

/// Returns f32 (length, width): sin(t·10000^(−2i/width)) at index 2i and the cosine at 2i + 1 (Vaswani et al.,
/// "Attention Is All You Need", 2017). `offset` as in RotaryOptions.
[[nodiscard]] Value sinusoidal_positions(Graph& graph, std::int64_t length, std::int64_t width, Value offset = {});

/// x (B, T, width) + sinusoidal_positions.
class SinusoidalPositions : public Module {
 public:
  [[nodiscard]] Value forward(Value x) override;
};

/// x (B, T, width) + the first T rows of the trained weight (longest, width).
class LearnedPositions : public Module {
 public:
  /// Throws ArgumentError for sizes below 1.
  LearnedPositions(std::int64_t longest, std::int64_t width);
  using Module::operator();
  /// `offset` i32 [1] is the position of the first token. A position >= longest gives NaN.
  Value operator()(Value x, Value offset);
  /// Throws ShapeError for more than `longest` tokens.
  [[nodiscard]] Value forward(Value x) override;
  [[nodiscard]] const VariablePtr& weight() const { return weight_; }

 private:
  void require(Value x) const;

  std::int64_t longest_, width_;
  VariablePtr weight_;
};

}  // namespace nn
}  // namespace concord
