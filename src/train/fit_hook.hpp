// FitHook: what may take the place of a training, so that a module above this one can compare devices on it instead.
// Internal to the library.
#pragma once

#include <atomic>

#include "concord/data/dataset.hpp"
#include "concord/nn/loss.hpp"
#include "concord/nn/module.hpp"
#include "concord/optim/optimizer.hpp"
#include "concord/train/options.hpp"

namespace concord::train {

/// A training that a Trainer is about to run. Nothing of it is checked yet.
struct FitTask {
  nn::Module& network;
  const Loss& loss;
  const optim::Optimizer& optimizer;
  const TrainerOptions& trainer;
  const Dataset& data;
  const FitOptions& fit;
};

/// Returns whether it took the place of the training; Trainer::fit then throws FitReplaced.
using FitHook = bool (*)(const FitTask&);

/// That of this process, which every fit asks first; null: none.
inline constinit std::atomic<FitHook> fit_hook = nullptr;  // other files set it before main

}  // namespace concord::train
