// Losses: functions of a prediction and a target, as PyTorch defines them. Each is a small struct:
// `loss::cross_entropy` has the defaults, `loss::CrossEntropy{.label_smoothing = 0.1F}` has other options. Pass one to
// a Trainer, or call it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "concord/core/export.hpp"
#include "concord/graph/graph.hpp"
#include "concord/ops/loss_terms.hpp"

namespace CONCORD_PUBLIC concord {

/// prediction, target → loss. Training needs a scalar. A Trainer joins the losses of several batches (accumulated
/// gradients, losses of an epoch or an evaluation), so it must know what a loss divides by:
/// - By default a loss is a mean over samples; a batch counts by its number of samples.
/// - A loss that returns `loss::weighted_mean(sum, weight)` gives the weight of its batch.
/// - A loss that returns `loss::total(sum)` is a sum; batches add up.
/// The losses below do this. A weighted sum of such losses (0.7F * a + 0.3F * b) keeps the kind of each term.
using Loss = std::function<Value(Value prediction, Value target)>;

namespace loss {

/// How the losses of single samples or elements are combined.
enum class Reduction : std::uint8_t { mean, sum, none };

/// −Σ_c w_c·t_c·log softmax(logits)_c. logits (N, C, d…); target i32 (N, d…) class indices, or f32 (N, C, d…)
/// probabilities. Label smoothing with ε = label_smoothing replaces t by (1−ε)·t + ε/C. With class indices,
/// Reduction::mean divides by the sum of the weights of the classes.
/// A class index outside [0, C) that is not `ignore_index` gives NaN: unlike in PyTorch, -100 is ignored only if it is
/// named. The mean over ignored labels alone is NaN;
/// training skips such a batch, and an evaluation does not count it.
struct CrossEntropy {
  float label_smoothing = 0;
  std::vector<float> weights = {};                // w, one for each class; empty: all 1
  std::optional<std::int32_t> ignore_index = {};  // samples with this class index have loss 0 and do not count
  Reduction reduction = Reduction::mean;
  Value operator()(Value logits, Value target) const;
};

/// −w·log p of the target. log-probabilities (N, C, d…); target i32 (N, d…). Other properties as CrossEntropy.
struct Nll {
  Reduction reduction = Reduction::mean;
  std::vector<float> weights = {};
  std::optional<std::int32_t> ignore_index = {};
  Value operator()(Value log_probabilities, Value target) const;
};

// The losses below compare elements; prediction and target have the same shape.

/// (prediction − target)².
struct Mse {
  Reduction reduction = Reduction::mean;
  Value operator()(Value prediction, Value target) const;
};

/// |prediction − target|.
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

/// −t·log σ(x) − (1−t)·log(1 − σ(x)), without overflow for any x and without cancellation for small losses.
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
