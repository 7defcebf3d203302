// One forward, one backward. Sending may wait for the receiver. So a stage takes the next values of the stage before it
// before it sends gradients back: that stage sends these values before it asks for the gradients.
#include "concord/train/pipeline_update.hpp"

#include <algorithm>

#include "concord/core/check.hpp"
#include "concord/optim/failure.hpp"

namespace concord::train {
namespace {

/// Writes the place of a batch in its epoch, and its random state, where the program reads them.
void write_place(Program& program, const Place& at, std::int64_t batch) {
  const std::string cursor = cursor_name(role_of(Purpose::train));
  if (program.has_input(cursor)) {
    program.write(cursor, Tensor::of<std::int32_t>(Shape{1}, std::vector{static_cast<std::int32_t>(batch)}));
  }
  if (program.has_input(kRandomState)) program.write(kRandomState, random_state_of(at.seed, at.epoch, batch));
}

/// Whether the inputs have a column of streamed samples: those of a stage in the middle have none.
bool reads_samples(const Source& source, const Program& program) {
  return std::ranges::any_of(source.features,
                             [&](const ColumnSpec& column) { return program.has_input(feature_name(column.name)); }) ||
         std::ranges::any_of(source.labels,
                             [&](const ColumnSpec& column) { return program.has_input(label_name(column.name)); });
}

}  // namespace

void PipelineSteps::begin_epoch(std::int64_t done) {
  begin_ = done;
  steps_.place_stage(programs_.full->terms);
}

StageProgram& PipelineSteps::program(std::int64_t batch) const {
  return batch < plan_.full.rows ? *programs_.full->stage : *programs_.last->stage;
}

void PipelineSteps::run_update(const std::function<void(std::int64_t batch)>& place) {
  const std::int64_t first = state_.at.batches_done(plan_);
  const std::int64_t end = std::min(first + state_.at.accumulate, plan_.batches());
  run_batches(first, end, place);
  programs_.full->stage->end_update();
  state_.pipeline->averages_have_changed();
  state_.at.move_to(plan_, end);
}

void PipelineSteps::run_batches(std::int64_t first, std::int64_t end,
                                const std::function<void(std::int64_t batch)>& place) {
  const PipelineRank& rank = *state_.pipeline;
  const auto slot = [&](std::int64_t batch) {
    return static_cast<std::size_t>(batch - first) % program(batch).slots();
  };
  std::int64_t received = first, forward = first;
  const auto receive = [&] {
    if (received > forward || forward == end) return;
    if (!rank.is_first()) program(received).receive_forward(slot(received));
    ++received;
  };
  const std::int64_t ahead = rank.last() - rank.stage();
  for (std::int64_t backward = first; backward < end;) {
    if (forward < end && forward - backward <= ahead) {
      receive();
      program(forward).run_forward(slot(forward), [&](Program& inputs) {
        place(forward);
        if (reads_samples(batches_.source(), inputs)) batches_.next(inputs);
        write_place(inputs, state_.at, forward);
      });
      if (!rank.is_last()) program(forward).send_forward(slot(forward));
      ++forward;
    } else {
      if (!rank.is_last()) program(backward).receive_backward(slot(backward));
      program(backward).run_backward(slot(backward));
      receive();
      if (!rank.is_first()) program(backward).send_backward(slot(backward));
      ++backward;
    }
  }
}

void PipelineSteps::require_finite(bool is_good) {
  StageProgram& stage = *programs_.full->stage;
  if (is_good) return stage.forget_failure();
  Place& at = state_.at;
  at.move_to(plan_, std::min(begin_ + steps_.batches_done() * at.accumulate, plan_.batches()));
  throw NonFinite(fmt::format(
      "{} of the update of {} batches from {} on is not finite. Weights and optimizer keep their values from before "
      "that update. {}",
      stage.failure(), at.accumulate, at.next_step(plan_), optim::kNonFiniteAdvice));
}

}  // namespace concord::train
