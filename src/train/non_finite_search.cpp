// The step compiled with every value kept.
#include "concord/train/non_finite_search.hpp"

#include <cmath>

namespace concord::train {

NonFiniteReport NonFiniteSearch::run(const StepProgramPtr& step, const Dataset* batch) {
  auto found = checked_.find(step);
  if (found == checked_.end()) {
    Program checked =
        compile(*step->graph, {&step->loss, 1}, variables_, {.fuse = false, .keep_all = true, .precision = precision_});
    found = checked_.emplace(step, std::move(checked)).first;
  }
  Program& checked = found->second;
  if (batch != nullptr) {
    checked.write("features", batch->features);
    checked.write("labels", batch->labels);
  }
  return checked.find_non_finite();
}

std::optional<optim::BadGradient> NonFiniteSearch::bad_gradient(const StepProgramPtr& step) {
  Program& checked = checked_.at(step);
  checked.run();  // changes nothing
  loss_is_finite_ = std::isfinite(checked.read(step->loss).values<float>()[0]);
  return optim::first_bad_gradient(*step->graph, checked);
}

}  // namespace concord::train
