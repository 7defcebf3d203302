// FitHook: a function that may replace a training. It lets a module above this one compare devices on the training.
// Internal to the library.
#pragma once

#include <atomic>

#include "concord/data/samples.hpp"
#include "concord/nn/module.hpp"
#include "concord/optim/optimizer.hpp"
#include "concord/train/objective.hpp"
#include "concord/train/options.hpp"

namespace concord {
struct TrainerState;
}

namespace concord::train {

/// A training that a Trainer is about to run. Nothing in it has been checked yet.
struct FitTask {
  nn::Module& network;
  const Objective& objective;
  const optim::Optimizer& optimizer;
  const TrainerOptions& trainer;
  const Samples& data;
  const FitOptions& fit;
};

/// Returns whether it replaced the training; Trainer::fit then throws FitReplaced.
using FitHook = bool (*)(const FitTask&);

/// The hook of this process. Every fit calls it first. Null if there is none.
inline constinit std::atomic<FitHook> fit_hook = nullptr;  // other files set it before main

/// Lets the hook replace the fit. Throws FitReplaced if it does.
void ask_fit_hook(const TrainerState& state, const Samples& data, const FitOptions& options);

}  // namespace concord::train
