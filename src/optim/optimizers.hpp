// The optimizers, with PyTorch's parameters, defaults and updates where it has them. `rule()` throws ArgumentError for
// a parameter out of its range.
//
// Finite gradients of any size of fp32 leave weights and states finite, with an `eps` of 0 too. Second moments (exp_avg_sq,
// square_avg, sum, variance, row_var, col_var, acc_delta) are stored as in PyTorch between 1e-28 and 1e36; beyond that fp32
// would lose the squares, and the negated root stands in their place: so gradients from 1e-37 to 3e38 keep their digits. Sums
// that have no bound of their own (momentum buffers of Sgd, Lars and RMSprop, and weights) stop at the largest number of
// fp32. Norms keep the range as well, up to that number.
#pragma once

#include <array>
#include <limits>

#include "concord/core/export.hpp"
#include "concord/optim/optimizer.hpp"

namespace CONCORD_PUBLIC concord {
namespace optim {

/// Gradient descent with momentum (Polyak 1964; Nesterov 1983). Weights and buffer stop at the largest number of fp32.
struct Sgd {
  double lr = 1e-3;
  double momentum = 0;
  double dampening = 0;
  bool nesterov = false;  // needs momentum and no dampening
  double weight_decay = 0;
  [[nodiscard]] Rule rule() const;
};

struct Betas {
  double first = 0.9, second = 0.999;
};

/// Kingma and Ba, "Adam", 2015; amsgrad: Reddi et al., 2018. Weight decay is added to the gradient.
struct Adam {
  double lr = 1e-3;
  Betas betas = {};
  double eps = 1e-8;
  double weight_decay = 0;
  bool amsgrad = false;
  [[nodiscard]] Rule rule() const;
};

/// Adam with decoupled weight decay (Loshchilov and Hutter, 2019).
struct AdamW {
  double lr = 1e-3;
  Betas betas = {};
  double eps = 1e-8;
  double weight_decay = 1e-2;
  bool amsgrad = false;
  [[nodiscard]] Rule rule() const;
};

/// Hinton 2012; centered: Graves 2013. A variance below 2^-23 of the mean of squares is rounding and counts as that much, so
/// that a constant gradient is divided by no less than 1/2900 of its size.
struct RMSprop {
  double lr = 1e-2;
  double alpha = 0.99;
  double eps = 1e-8;
  double momentum = 0;
  bool centered = false;
  double weight_decay = 0;
  [[nodiscard]] Rule rule() const;
};

/// Duchi, Hazan, Singer, 2011.
struct Adagrad {
  double lr = 1e-2;
  double lr_decay = 0;
  double eps = 1e-10;
  double initial_accumulator = 0;
  double weight_decay = 0;
  [[nodiscard]] Rule rule() const;
};

/// Zeiler, "ADADELTA", 2012.
struct Adadelta {
  double lr = 1.0;
  double rho = 0.9;
  double eps = 1e-6;
  double weight_decay = 0;
  [[nodiscard]] Rule rule() const;
};

/// Adam with the largest gradient in place of their mean square (Kingma and Ba, 2015).
struct Adamax {
  double lr = 2e-3;
  Betas betas = {};
  double eps = 1e-8;
  double weight_decay = 0;
  [[nodiscard]] Rule rule() const;
};

/// Adam with Nesterov momentum (Dozat, 2016).
struct NAdam {
  double lr = 2e-3;
  Betas betas = {};
  double eps = 1e-8;
  double weight_decay = 0;
  double momentum_decay = 4e-3;
  bool decoupled_weight_decay = false;
  [[nodiscard]] Rule rule() const;
};

/// Rectified Adam (Liu et al., "On the Variance of the Adaptive Learning Rate and Beyond", 2020).
struct RAdam {
  double lr = 1e-3;
  Betas betas = {};
  double eps = 1e-8;
  double weight_decay = 0;
  bool decoupled_weight_decay = false;
  [[nodiscard]] Rule rule() const;
};

/// Layer-wise adaptive rates for large batches: momentum with the rate of each parameter scaled by
/// trust·|weight| / (|gradient| + weight_decay·|weight| + eps), by 1 where either norm is 0 (You, Gitman, Ginsburg,
/// 2017). Biases and norms are usually left to Sgd, in a group of optim::vectors().
struct Lars {
  double lr = 0.1;
  double momentum = 0.9;
  double weight_decay = 0;
  double trust = 1e-3;
  double eps = 0;
  [[nodiscard]] Rule rule() const;
};

/// Adam's direction with decoupled decay, in parts of the parameter's norm (You et al., "Large Batch Optimization for
/// Deep Learning", 2020): rate·φ(|weight|) / |direction|, by 1 where either is 0; φ brings the norm into
/// [least_norm, most_norm].
struct Lamb {
  double lr = 1e-3;
  Betas betas = {};
  double eps = 1e-6;
  double weight_decay = 0.01;
  double least_norm = 0, most_norm = std::numeric_limits<double>::infinity();
  [[nodiscard]] Rule rule() const;
};

/// The sign of a momentum (Chen et al., "Symbolic Discovery of Optimization Algorithms", 2023), decoupled decay.
struct Lion {
  double lr = 1e-4;
  Betas betas = {0.9, 0.99};
  double weight_decay = 0;
  [[nodiscard]] Rule rule() const;
};

/// Shazeer and Stern, 2018, as in PyTorch: of parameters with rank 2 and more only row and column means of the squared
/// gradients are kept, over the last two axes. The rate is at most 1/√step, in parts of the weights' root mean square.
struct Adafactor {
  double lr = 1e-2;
  double beta2_decay = -0.8;
  double eps1 = std::numeric_limits<float>::epsilon();
  double eps2 = 1e-3;
  double d = 1;  // an update's root mean square is held below it
  double weight_decay = 0;
  [[nodiscard]] Rule rule() const;
};

/// Momentum orthogonalized by Newton–Schulz iterations (Jordan et al., "Muon", 2024), decoupled decay. For parameters
/// of rank 2 and more; those of more than 2 count as matrices (first axis, all others). Biases and norms need a group
/// with another optimizer.
struct Muon {
  /// What the rate is multiplied by: √max(1, rows/columns); 0.2·√max(rows, columns), for rates as of AdamW; or
  /// √(rows/columns).
  enum class Rate : std::uint8_t { original, match_rms_adamw, spectral };
  double lr = 1e-3;
  double weight_decay = 0.1;
  double momentum = 0.95;
  bool nesterov = true;
  std::array<double, 3> coefficients = {3.4445, -4.7750, 2.0315};
  double eps = 1e-7;
  int iterations = 5;
  Rate rate = Rate::original;
  [[nodiscard]] Rule rule() const;
};

}  // namespace optim
}  // namespace concord
