// Losses: functions of a prediction and a target, as PyTorch defines them. Each is a small value: `loss::cross_entropy`
// is the default one, `loss::CrossEntropy{.label_smoothing = 0.1F}` another. Handed to a Trainer or called in a loop.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "concord/core/export.hpp"
#include "concord/graph/graph.hpp"
#include "concord/ops/loss_terms.hpp"

namespace CONCORD_PUBLIC concord {

/// prediction, target → loss; a scalar where it is to be trained on. One of one's own is taken for a mean over samples
/// where it does not say otherwise: batches that are joined, by accumulation or in the losses of an epoch or an
/// evaluation, count by their samples. `loss::weighted_mean(sum, weight)` as a result gives the weight of the batch,
/// `loss::total(sum)` says that batches add up. The losses below do so where it matters, and it is found through sums
/// of multiples of such losses (0.7F * a + 0.3F * b), whatever each is a mean over.
using Loss = std::function<Value(Value prediction, Value target)>;

namespace loss {

/// What becomes of the losses of the single samples or elements.
enum class Reduction : std::uint8_t { mean, sum, none };

/// logits (N, C, d…); target i32 (N, d…), class indices, or f32 (N, C, d…), probabilities. −Σ_c w_c·t_c·log
/// softmax(logits)_c with t smoothed by ε = label_smoothing: (1−ε)·t + ε/C. The mean of class indices is over the
/// weights of their classes. A class index outside [0, C) that is not `ignore_index` gives NaN, as does the mean where
/// all are ignored; a training leaves its weights alone in a batch of such labels, and an evaluation counts them
/// nowhere.
struct CrossEntropy {
  float label_smoothing = 0;
  std::vector<float> weights = {};                // w, one a class; empty: 1
  std::optional<std::int32_t> ignore_index = {};  // of class indices: such a sample counts as none, with loss 0
  Reduction reduction = Reduction::mean;
  Value operator()(Value logits, Value target) const;
};

/// log-probabilities (N, C, d…); target i32 (N, d…). −w·log p of the target; the rest as of CrossEntropy.
struct Nll {
  Reduction reduction = Reduction::mean;
  std::vector<float> weights = {};
  std::optional<std::int32_t> ignore_index = {};
  Value operator()(Value log_probabilities, Value target) const;
};

// The losses below compare element by element; prediction and target have the same shape.

struct Mse {
  Reduction reduction = Reduction::mean;
  Value operator()(Value prediction, Value target) const;
};

struct L1 {
  Reduction reduction = Reduction::mean;
  Value operator()(Value prediction, Value target) const;
};

/// d²/2 for |d| <= delta, else delta·(|d| − delta/2).
struct Huber {
  float delta = 1;
  Reduction reduction = Reduction::mean;
  Value operator()(Value prediction, Value target) const;
};

/// d²/(2·beta) for |d| < beta, else |d| − beta/2. (Huber divided by beta.)
struct SmoothL1 {
  float beta = 1;
  Reduction reduction = Reduction::mean;
  Value operator()(Value prediction, Value target) const;
};

/// −t·log σ(x) − (1−t)·log(1 − σ(x)): no overflow for any x, and no cancellation where a loss is small.
struct BceWithLogits {
  Reduction reduction = Reduction::mean;
  Value operator()(Value logits, Value target) const;
};

inline const CrossEntropy cross_entropy{};
inline const Nll nll{};
inline constexpr Mse mse{};
inline constexpr L1 l1{};
inline constexpr Huber huber{};
inline constexpr SmoothL1 smooth_l1{};
inline constexpr BceWithLogits bce_with_logits{};

}  // namespace loss
}  // namespace concord
