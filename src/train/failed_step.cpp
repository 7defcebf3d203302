// The messages about a step with values that are not finite.
#include "concord/train/failed_step.hpp"

#include <utility>

#include "concord/core/check.hpp"
#include "concord/data/selection.hpp"
#include "concord/optim/failure.hpp"

namespace concord::train {
namespace {

constexpr const char* kKept = ". Weights and optimizer keep their values from before that step.";

}  // namespace

FailedStep::FailedStep(const TrainerState& state, const Samples& data, const FitOptions& options, const EpochPlan& plan,
                       EpochPrograms programs, bool is_streamed)
    : state_(state),
      data_(data),
      options_(options),
      plan_(plan),
      programs_(std::move(programs)),
      is_streamed_(is_streamed),
      search_(state.weights.variables(), state.options.precision) {}

std::vector<std::int32_t> FailedStep::rows() const {
  const std::vector<std::int32_t> order = order_of(plan_, data_, options_, state_.at.seed, state_.at.epoch);
  const std::span<const std::int32_t> own = state_.ranks.own_rows_of(plan_, order, batch());
  return {own.begin(), own.end()};
}

void FailedStep::augment(Tensor& features, std::span<const std::int32_t> rows) const {
  if (!options_.augmentation) return;
  const TensorSpec spec = data_.feature_specs()[0].spec;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    options_.augmentation(features.bytes().subspan(i * spec.bytes(), spec.bytes()),
                          {rows[i], static_cast<std::uint32_t>(state_.at.epoch), spec});
  }
}

NonFiniteReport FailedStep::search() {
  if (!is_streamed_) return search_.run(step(), nullptr);
  const std::vector<std::int32_t> of_batch = rows();
  Dataset batch = data::read_rows(data_, of_batch, state_.at.seed, static_cast<std::uint32_t>(state_.at.epoch));
  augment(batch.features, of_batch);
  return search_.run(step(), &batch);
}

void FailedStep::require_finite_values() {
  const timeline::Span span("search for values that are not finite");
  const NonFiniteReport report = search();
  require_right_index(report, rows(), name(), kKept);
  CONCORD_CHECK(!report.found, NonFinite, "{} has a value that is not finite; the first is {}{}", name(), report.str(),
                kKept);
}

void FailedStep::explain() {
  // Running the step again by operators would need the sums of all ranks.
  CONCORD_CHECK(!state_.options.model_parallel.is_on(), NonFinite, "the loss or a gradient of {} is not finite{} {}",
                name(), kKept, optim::kNonFiniteAdvice);
  NonFiniteReport report;
  std::string what = "the loss", where = "running the step again found no such value";
  if (state_.ranks.are_several()) where += fmt::format(" on rank {}", state_.ranks.rank());
  if (batch() >= plan_.batches() || !step()) {
    throw NonFinite(fmt::format("{} of {} is not finite: another rank says where{}", what, name(), kKept));
  }
  try {
    report = search();
    if (report.found) where = "the first such value is " + report.str();
    if (const auto gradient = search_.bad_gradient(step())) {
      if (search_.loss_is_finite()) what = "the loss is finite, but a gradient";
      where += "; also not finite: " + gradient->str();
    }
  } catch (const Error& error) {
    where = fmt::format("the step could not be run again to look for the first such value: {}", error.what());
  }
  require_right_index(report, rows(), name(), kKept);
  throw NonFinite(fmt::format("{} of {} is not finite: {}{} {}", what, name(), where, kKept, optim::kNonFiniteAdvice));
}

}  // namespace concord::train
