// Losses for distributions and overlaps: Kullback–Leibler, distillation, Poisson and Gaussian likelihood, focal and
// Dice. They equal PyTorch's where PyTorch has them.
#pragma once

#include "concord/core/export.hpp"
#include "concord/nn/loss.hpp"

namespace CONCORD_PUBLIC concord {
namespace loss {

/// t·(log t − prediction), 0 for t = 0. log-probabilities and target have the same shape.
struct KlDivergence {
  bool log_target = false;  // the target contains log-probabilities too
  bool per_sample = true;   // the mean is over axis 0 (PyTorch's "batchmean"), else over all elements
  Reduction reduction = Reduction::mean;
  Value operator()(Value log_probabilities, Value target) const;
};

/// T²·KL(softmax(teacher/T) ‖ softmax(student/T)) of the logits of a student and a teacher, (N, C); the mean is over N
/// (Hinton, Vinyals and Dean, 2015).
struct Distillation {
  float temperature = 2;
  Reduction reduction = Reduction::mean;
  Value operator()(Value student, Value teacher) const;
};

/// exp(x) − t·x, or with log_input = false x − t·log(x + eps). `full` adds Stirling's term for t > 1.
struct PoissonNll {
  bool log_input = true;
  bool full = false;
  float eps = 1e-8F;
  Reduction reduction = Reduction::mean;
  Value operator()(Value prediction, Value target) const;
};

/// (log v + (x − t)²/v)/2 with v = max(variance, eps). `full` adds log(2π)/2. mean and target have one shape; the
/// variance has the same shape or broadcasts to it.
struct GaussianNll {
  bool full = false;
  float eps = 1e-6F;
  Reduction reduction = Reduction::mean;
  Value operator()(Value mean, Value target, Value variance) const;
};

/// Binary cross-entropy times (1 − p_t)^gamma, where p_t is the probability of the true class. A factor alpha applies
/// to targets 1, and 1 − alpha to targets 0; alpha < 0 means no such factor. Logits and targets in [0, 1] have one
/// shape (Lin et al., 2017).
struct Focal {
  float alpha = 0.25F;
  float gamma = 2;
  Reduction reduction = Reduction::mean;
  Value operator()(Value logits, Value target) const;
};

/// 1 − (2·Σpt + smooth)/(Σp + Σt + smooth) with sums over d…, or over C for (N, C). Probabilities and targets have one
/// shape (N, C, d…) (Milletari, Navab and Ahmadi, 2016).
struct Dice {
  float smooth = 1;
  Reduction reduction = Reduction::mean;
  Value operator()(Value probabilities, Value target) const;
};

inline constexpr KlDivergence kl_divergence{};
inline constexpr Distillation distillation{};
inline constexpr PoissonNll poisson_nll{};
inline constexpr GaussianNll gaussian_nll{};
inline constexpr Focal focal{};
inline constexpr Dice dice{};

}  // namespace loss
}  // namespace concord
