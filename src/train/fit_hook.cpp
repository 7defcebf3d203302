// Asking the hook of this process.
#include "concord/train/fit_hook.hpp"

#include "concord/train/state.hpp"

namespace concord::train {

void ask_fit_hook(const TrainerState& state, const Samples& data, const FitOptions& options) {
  const FitHook hook = fit_hook;
  if (hook == nullptr) return;
  TrainerOptions trainer = state.options;
  trainer.seed = state.at.seed;
  const Recipe& recipe = state.recipe;
  if (!hook({*recipe.network, recipe.objective, recipe.optimizer, trainer, data, options})) return;
  throw FitReplaced("the training was compared on devices instead of run, as `concord compare` asked");
}

}  // namespace concord::train
