// Compiles the step with every value kept.
#include "concord/train/non_finite_search.hpp"

#include <fmt/format.h>

#include <cmath>

namespace concord::train {

void require_right_index(const NonFiniteReport& report, std::span<const std::int32_t> rows, std::string_view step,
                         std::string_view state) {
  if (!report.wrong_index) return;
  std::optional<std::int64_t> sample = report.wrong_index->sample(static_cast<std::int64_t>(rows.size()));
  if (sample) sample = rows[static_cast<std::size_t>(*sample)];
  throw ArgumentError(fmt::format("{}: {}, the rows of '{}' ({}){}", step, report.wrong_index->str(sample), report.node,
                                  report.op, state));
}

NonFiniteReport NonFiniteSearch::run(const StepProgramPtr& step, const Dataset* batch) {
  auto found = checked_.find(step);
  if (found == checked_.end()) {
    Program checked = compile(*step->graph, step->results(), variables_,
                              {.fuse = false, .retain = Retain::all, .precision = precision_});
    found = checked_.emplace(step, std::move(checked)).first;
  }
  Program& checked = found->second;
  if (batch != nullptr) write_batch(checked, *batch);
  return checked.find_non_finite();
}

std::optional<optim::BadGradient> NonFiniteSearch::bad_gradient(const StepProgramPtr& step) {
  Program& checked = checked_.at(step);
  checked.run();  // changes nothing
  loss_is_finite_ = std::isfinite(checked.read(step->loss).values<float>()[0]);
  return optim::first_bad_gradient(*step->graph, checked);
}

}  // namespace concord::train
