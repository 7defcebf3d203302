// The loss for sequences that are not aligned with their labels; see ops/ctc.hpp.
#pragma once

#include "concord/core/export.hpp"
#include "concord/nn/loss.hpp"

namespace CONCORD_PUBLIC concord {
namespace loss {

/// logits (T, N, C), or log-probabilities, which normalising leaves as they are; targets i32 (N, S), padded;
/// input_lengths and target_lengths i32 (N). −log p(target) of each sample; the mean is of losses divided by the
/// targets' lengths (of at least 1), as in PyTorch. `zero_infinity`: targets too long for their input count 0.
struct Ctc {
  std::int32_t blank = 0;
  bool zero_infinity = false;
  Reduction reduction = Reduction::mean;
  Value operator()(Value logits, Value targets, Value input_lengths, Value target_lengths) const;
};

inline constexpr Ctc ctc{};

}  // namespace loss
}  // namespace concord
