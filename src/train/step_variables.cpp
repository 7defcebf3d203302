// Reads and writes by the names that the programs of a training use.
#include "concord/train/step_variables.hpp"

#include "concord/core/philox.hpp"
#include "concord/optim/minimize.hpp"
#include "concord/train/loss_sums.hpp"
#include "concord/train/source.hpp"
#include "concord/train/trace.hpp"

namespace concord::train {

Tensor random_state_of(std::uint64_t seed, std::int64_t epoch, std::int64_t batch) {
  const Philox stream(seed, philox_purpose("train.epoch"), static_cast<std::uint32_t>(epoch));
  const auto word = [&](std::uint64_t i) { return static_cast<std::int32_t>(stream.word(i) & 0xFFFFFF); };
  const auto step = static_cast<std::int32_t>(batch % optim::kMostSteps);
  return Tensor::of<std::int32_t>(Shape{4}, std::vector<std::int32_t>{word(0), word(1), step, 0});
}

void StepVariables::place_stage(std::span<const LossTerm::Kind> terms) {
  variables_->write(cursor_name(role_), Tensor(DType::i32, Shape{1}));
  const std::vector<float> sums = counts(terms);
  variables_->write(kExchangedCounts, Tensor::of<float>(Shape{static_cast<std::int64_t>(sums.size())}, sums));
}

void StepVariables::restart(std::span<const LossTerm::Kind> terms, std::uint64_t seed, std::int64_t epoch) {
  variables_->write(cursor_name(role_), Tensor(DType::i32, Shape{1}));
  for (std::size_t t = 0; t < terms.size(); ++t) {
    for (const std::string& name : {loss_sum_name(role_, t), loss_weight_name(role_, t)}) {
      if (variables_->contains(name)) variables_->write(name, Tensor(DType::f32, Shape{1}));
    }
  }
  if (!variables_->contains(kRandomState, VariableRole::random)) return;
  variables_->write(kRandomState, random_state_of(seed, epoch, 0));
}

void StepVariables::place_rank(std::int64_t own_batches, std::int64_t next_run) {
  const Tensor cursor = Tensor::of<std::int32_t>(Shape{1}, std::vector{static_cast<std::int32_t>(own_batches)});
  variables_->write(cursor_name(role_), cursor);
  variables_->write(kUpdatedCursor, cursor);
  random_ = variables_->contains(kRandomState, VariableRole::random) ? variables_->read(kRandomState) : Tensor();
  place_run(next_run);
}

void StepVariables::place_run(std::int64_t next_run) {
  if (random_.elements() == 0) return;
  random_.values<std::int32_t>()[2] = static_cast<std::int32_t>(next_run % optim::kMostSteps);
  variables_->write(kRandomState, random_);
}

void StepVariables::set_rate(float rate) {
  if (rate == rate_) return;
  variables_->write(optim::kRate, Tensor::of<float>(Shape{}, std::vector<float>{rate}));
  rate_ = rate;
}

void StepVariables::set_flush(bool flush) {
  if (flush == flush_) return;
  variables_->write(optim::kFlush, Tensor::of<float>(Shape{}, std::vector<float>{flush ? 1.0F : 0.0F}));
  flush_ = flush;
}

bool StepVariables::are_finite() const { return variables_->read(optim::kOk).values<float>()[0] != 0; }

std::int64_t StepVariables::batches_done() const {
  return variables_->read(cursor_name(role_)).values<std::int32_t>()[0];
}

std::vector<float> StepVariables::counts(std::span<const LossTerm::Kind> terms) const {
  std::vector<float> counts;
  for (std::size_t t = 0; t < terms.size(); ++t) {
    for (const std::string& name : {loss_sum_name(role_, t), loss_weight_name(role_, t)}) {
      if (variables_->contains(name)) counts.push_back(variables_->read(name).values<float>()[0]);
    }
  }
  return counts;
}

double StepVariables::loss(std::span<const LossTerm::Kind> terms, std::int64_t samples) const {
  std::vector<double> sums, weights;
  const auto sum_of = [&](const std::string& name) {
    return variables_->contains(name) ? static_cast<double>(variables_->read(name).values<float>()[0]) : 0;
  };
  for (std::size_t t = 0; t < terms.size(); ++t) {
    sums.push_back(sum_of(loss_sum_name(role_, t)));
    weights.push_back(sum_of(loss_weight_name(role_, t)));
  }
  return joined_loss(terms, sums, weights, static_cast<double>(samples));
}

}  // namespace concord::train
