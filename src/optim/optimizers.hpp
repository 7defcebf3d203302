// The optimizers, with PyTorch's parameters, defaults and updates if PyTorch has them. `rule()` throws ArgumentError
// for a parameter out of range.
//
// Finite gradients of any size leave weights and states finite, even with an `eps` of 0. Second moments (exp_avg_sq,
// square_avg, sum, variance, row_var, col_var, acc_delta) between 1e-28 and 1e36 are stored as in PyTorch. Beyond this
// range fp32 would lose the squares, so the state is the negated square root. So gradients from 1e-37 to 3e38 keep
// their digits. Sums without a bound (momentum buffers of Sgd, Lars and RMSprop, and weights) stop at the largest fp32
// number, and so do norms.
#pragma once

#include <array>
#include <limits>
#include <tuple>

#include "concord/core/export.hpp"
#include "concord/optim/optimizer.hpp"

namespace CONCORD_PUBLIC concord {
namespace optim {

/// Gradient descent with momentum (Polyak, 1964; Nesterov, 1983). Weights and buffer stop at the largest fp32 number.
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

/// Adam (Kingma and Ba, 2015); amsgrad: Reddi et al., 2018. Weight decay is added to the gradient.
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

/// RMSprop (Hinton, 2012); centered: Graves, 2013. A centered variance below 2^-23 of the mean square is only rounding
/// and is raised to that limit. So a constant gradient is divided by at least 1/2900 of its size.
struct RMSprop {
  double lr = 1e-2;
  double alpha = 0.99;
  double eps = 1e-8;
  double momentum = 0;
  bool centered = false;
  double weight_decay = 0;
  [[nodiscard]] Rule rule() const;
};

/// Adagrad (Duchi, Hazan and Singer, 2011).
struct Adagrad {
  double lr = 1e-2;
  double lr_decay = 0;
  double eps = 1e-10;
  double initial_accumulator = 0;
  double weight_decay = 0;
  [[nodiscard]] Rule rule() const;
};

/// Adadelta (Zeiler, "ADADELTA", 2012).
struct Adadelta {
  double lr = 1.0;
  double rho = 0.9;
  double eps = 1e-6;
  double weight_decay = 0;
  [[nodiscard]] Rule rule() const;
};

/// Adam with the largest gradient instead of the mean square (Kingma and Ba, 2015).
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

/// Layer-wise adaptive rates for large batches (You, Gitman and Ginsburg, 2017): momentum, with the learning rate of
/// each parameter multiplied by trust·‖weight‖ / (‖gradient‖ + weight_decay·‖weight‖ + eps), or by 1 if a norm is 0.
/// Biases and norms usually use Sgd, in a group of optim::vectors().
struct Lars {
  double lr = 0.1;
  double momentum = 0.9;
  double weight_decay = 0;
  double trust = 1e-3;
  double eps = 0;
  [[nodiscard]] Rule rule() const;
};

/// Adam's direction with decoupled weight decay, multiplied by rate·φ(‖weight‖) / ‖direction‖. The quotient is 1 if a
/// norm is 0; φ clamps to [least_norm, most_norm] (You et al., "Large Batch Optimization for Deep Learning", 2020).
struct Lamb {
  double lr = 1e-3;
  Betas betas = {};
  double eps = 1e-6;
  double weight_decay = 0.01;
  double least_norm = 0, most_norm = std::numeric_limits<double>::infinity();
  [[nodiscard]] Rule rule() const;
};

/// The sign of a momentum, with decoupled weight decay (Chen et al., "Symbolic Discovery of Optimization Algorithms",
/// 2023).
struct Lion {
  double lr = 1e-4;
  Betas betas = {0.9, 0.99};
  double weight_decay = 0;
  [[nodiscard]] Rule rule() const;
};

/// Adafactor (Shazeer and Stern, 2018), as in PyTorch. A parameter of rank 2 or more keeps only row and column means of
/// the squared gradients, over its last two axes. The rate is at most 1/√step, relative to the root mean square of the
/// weights.
struct Adafactor {
  double lr = 1e-2;
  double beta2_decay = -0.8;
  double eps1 = std::numeric_limits<float>::epsilon();
  double eps2 = 1e-3;
  double d = 1;  // upper limit of an update's root mean square
  double weight_decay = 0;
  [[nodiscard]] Rule rule() const;
};

/// Momentum orthogonalized by Newton–Schulz iterations, with decoupled weight decay (Jordan et al., "Muon", 2024). For
/// parameters of rank 2 and more; higher ranks count as matrices (first axis, all others). Biases and norms need a
/// group with another optimizer.
struct Muon {
  /// The factor of the learning rate. original: √max(1, rows/columns). match_rms_adamw: 0.2·√max(rows, columns), for
  /// the learning rates of AdamW. spectral: √(rows/columns).
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

/// Every optimizer of this header. The command's --optimizer and the tests follow from it.
using Optimizers =
    std::tuple<Sgd, Adam, AdamW, RMSprop, Adagrad, Adadelta, Adamax, NAdam, RAdam, Lamb, Lars, Lion, Adafactor, Muon>;

}  // namespace optim
}  // namespace concord
