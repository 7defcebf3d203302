// The optimizers, with PyTorch's parameters, defaults and updates. `rule()` throws ArgumentError for a parameter out of
// its range.
#pragma once

#include "concord/optim/optimizer.hpp"

namespace concord::optim {

/// Gradient descent with momentum (Polyak 1964; Nesterov 1983).
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

/// Hinton 2012; centered: Graves 2013.
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

}  // namespace concord::optim
