// The CTC loss, for sequences without an alignment to their labels; see ops/ctc.hpp.
#pragma once

#include "concord/core/export.hpp"
#include "concord/nn/loss.hpp"

namespace CONCORD_PUBLIC concord {
namespace loss {

/// −log p(target) of each sample. logits (T, N, C), or log-probabilities (their normalisation does not change them);
/// targets i32 (N, S), padded; input_lengths and target_lengths i32 (N). As in PyTorch, Reduction::mean first divides
/// each loss by the length of its target (at least 1). `zero_infinity`: a target too long for its input has the loss 0.
struct Ctc {
  std::int32_t blank = 0;
  bool zero_infinity = false;
  Reduction reduction = Reduction::mean;
  Value operator()(Value logits, Value targets, Value input_lengths, Value target_lengths) const;
};

inline constexpr Ctc ctc{};

}  // namespace loss
}  // namespace concord
