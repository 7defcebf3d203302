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

Program& NonFiniteSearch::checked(const StepProgramPtr& step, RunPart part) {
  const std::pair key(step, part);
  auto found = checked_.find(key);
  if (found == checked_.end()) {
    Program checked = compile(*step->graph, step->results(), variables_,
                              {.fuse = false, .retain = Retain::all, .precision = precision_, .part = part});
    checked.all_reduce_by([](const Operand&, std::size_t) {});  // of this rank alone: the others run something else
    found = checked_.emplace(key, std::move(checked)).first;
  }
  return found->second;
}

NonFiniteReport NonFiniteSearch::run(const StepProgramPtr& step, const Dataset* batch) {
  // Sums over ranks hold what another rank has added.
  Program& part = checked(step, step->exchange ? RunPart::before_exchange : RunPart::whole);
  batch_ = batch != nullptr ? std::optional(*batch) : std::nullopt;
  if (batch_) write_batch(part, *batch_);
  return part.find_non_finite();
}

std::optional<optim::BadGradient> NonFiniteSearch::bad_gradient(const StepProgramPtr& step) {
  Program& whole = checked(step, RunPart::whole);
  if (batch_) write_batch(whole, *batch_);
  whole.run();  // changes nothing
  loss_is_finite_ = std::isfinite(whole.read(step->loss).values<float>()[0]);
  return optim::first_bad_gradient(*step->graph, whole);
}

}  // namespace concord::train
