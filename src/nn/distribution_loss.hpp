// Losses that compare distributions and overlaps: Kullback–Leibler, distillation, Poisson and Gaussian likelihood,
// focal and Dice. As PyTorch defines them where it does.
#pragma once

#include "concord/core/export.hpp"
#include "concord/nn/loss.hpp"

namespace CONCORD_PUBLIC concord {
namespace loss {

/// log-probabilities and target, of one shape: t·(log t − prediction), 0 where t = 0.
struct KlDivergence {
  bool log_target = false;  // the target is log-probabilities too
  bool per_sample = true;   // the mean is over axis 0 (PyTorch's "batchmean"), not over elements
  Reduction reduction = Reduction::mean;
  Value operator()(Value log_probabilities, Value target) const;
};

/// logits of a student and of its teacher (N, C): T²·KL(softmax(teacher/T) ‖ softmax(student/T)), the mean over N
/// (Hinton, Vinyals, Dean, 2015).
struct Distillation {
  float temperature = 2;
  Reduction reduction = Reduction::mean;
  Value operator()(Value student, Value teacher) const;
};

/// exp(x) − t·x, or x − t·log(x + eps) without `log_input`; `full` adds Stirling's term for t > 1.
struct PoissonNll {
  bool log_input = true;
  bool full = false;
  float eps = 1e-8F;
  Reduction reduction = Reduction::mean;
  Value operator()(Value prediction, Value target) const;
};

/// (log v + (x − t)²/v)/2 with v = max(variance, eps); `full` adds log(2π)/2. Three values of one shape, or a variance
/// that broadcasts.
struct GaussianNll {
  bool full = false;
  float eps = 1e-6F;
  Reduction reduction = Reduction::mean;
  Value operator()(Value mean, Value target, Value variance) const;
};

/// Logits and targets in [0, 1] of one shape: the binary cross-entropy times (1 − p_t)^gamma, with p_t the probability
/// of what is the case, and times alpha for targets of 1, 1 − alpha for 0 (Lin et al., 2017). alpha < 0: no such
/// factor.
struct Focal {
  float alpha = 0.25F;
  float gamma = 2;
  Reduction reduction = Reduction::mean;
  Value operator()(Value logits, Value target) const;
};

/// Probabilities and targets of one shape (N, C, d…): 1 − (2·Σpt + smooth)/(Σp + Σt + smooth), the sums over d… or, for
/// (N, C), over C (Milletari, Navab, Ahmadi, 2016).
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
