// Making programs, keeping them, and what can be done when they do not fit on the device.
#include "concord/train/programs.hpp"

#include <algorithm>

#include "concord/compile/memory_need.hpp"
#include "concord/core/check.hpp"
#include "concord/ops/all_reduce.hpp"
#include "concord/train/on_all_ranks.hpp"
#include "concord/train/peers.hpp"
#include "concord/train/ranks.hpp"

namespace concord::train {

StepProgramPtr Programs::find(const ProgramKey& key) {
  programs_.remove_if([](const auto& entry) { return !nn::Module::is_up_to_date(*entry.second->graph); });
  const auto found = std::ranges::find(programs_, key, &std::pair<ProgramKey, StepProgramPtr>::first);
  if (found == programs_.end()) return nullptr;
  programs_.splice(programs_.begin(), programs_, found);
  return found->second;
}

void Programs::drop(const std::string& source_id) {
  programs_.remove_if([&](const auto& entry) { return entry.first.source.id == source_id; });
}

void Programs::clear() {
  programs_.clear();
  if (exchange_) exchange_->unbind();
  exchange_.reset();
  step_sums_.reset();
}

StepProgramPtr Programs::make_part(const ProgramKey& key) {
  StepProgramPtr program;
  on_all_ranks(*options_.group, "part", [&] { program = make_whole(key); });
  join_parts(*program->program, *program->graph);
  return program;
}

void Programs::join_parts(Program& program, const Graph& graph) {
  collective::Group& group = *options_.group;
  std::vector<Agreed> sums;
  for (const Program::AllReduced& sum : program.all_reduces()) {
    sums.push_back({"the sizes of the sums within a step", sum.count});
  }
  const Ranks ranks(options_.group, 1, true);
  ranks.require_equal(std::vector<Agreed>{{"the numbers of sums within a step", sums.size()}});
  ranks.require_equal(sums);
  const auto most = static_cast<std::size_t>(most_all_reduced(graph));
  if (!step_sums_ || step_sums_->most() < most) {
    Device& device = weights_.variables()->device();
    step_sums_.emplace(group, device, most, may_share_memory(group, device.info()));
  }
  program.all_reduce_by([this](const Operand& values, std::size_t count) { step_sums_->sum(values, count); });
}

void Programs::require_all_ranks() {
  if (exchange_) exchange_->require_all_ranks();
  if (step_sums_) step_sums_->require_all_ranks();
}

CompileOptions Programs::options_of(Purpose purpose) const {
  return {.precision = options_.precision, .memory_budget = purpose == Purpose::train ? options_.memory_budget : 0};
}

void StepProgram::run_training(bool is_last_of_update) {
  if (is_last_of_update && exchange) {
    program->run(marks, [&](std::size_t bucket) { exchange->begin(bucket); });
  } else {
    program->run();
  }
}

void StepProgram::run_without_batch(bool is_last_of_update) {
  std::size_t next = 0;
  const auto begin_until = [&](std::size_t launches) {
    if (!is_last_of_update) return;
    while (next < marks.size() && marks[next] <= launches) exchange->begin(next++);
  };
  for (const Program::AllReduced& sum : program->all_reduces()) {
    begin_until(sum.launch);
    if (StepSums* const sums = exchange->step_sums()) sums->add_nothing(sum.count);
  }
  begin_until(program->launches());
}

void StepProgram::run_update() {
  exchange->finish();
  update->run(late_marks, [&](std::size_t bucket) { exchange->finish_late(bucket); });
}

StepProgramPtr Programs::get(const ProgramKey& key) {
  StepProgramPtr program = find(key);
  if (program) return program;
  program = make(key);
  programs_.emplace_front(key, program);
  if (programs_.size() > kMost) programs_.pop_back();
  return program;
}

void Programs::accept(const Traced& traced, Weights::Arrival arrival) {
  if (!arrival.begun.empty()) programs_.remove_if([](const auto& entry) { return entry.first.averaged; });
  weights_.accept(traced, std::move(arrival));
}

StepProgramPtr Programs::make(const ProgramKey& key) {
  if (pipeline_ != nullptr) return make_stage(key);
  return recipe_.model_parallel.is_on() ? make_part(key) : make_whole(key);
}

StepProgramPtr Programs::make_whole(const ProgramKey& key) {
  Traced traced = trace(recipe_, key);
  // All files are checked before anything is taken from them: a program that they do not fit is not kept.
  Weights::Arrival arrival = weights_.expect(traced, key);
  const VariablesPtr variables = weights_.storage_for(*traced.graph, key.averaged, traced.graph->variables());
  const std::shared_ptr<Exchange> exchange = exchange_of(*traced.graph);
  CompileOptions options = options_of(key.purpose);
  if (exchange) options.part = RunPart::before_exchange;
  Program compiled = compile(*traced.graph, traced.results(), variables, options);
  std::optional<Program> update;
  std::vector<std::size_t> marks, late_marks;
  if (exchange) {
    options.part = RunPart::after_exchange;
    options.late = exchange->late();
    options.memory_budget = 0;  // it recomputes nothing
    update = compile(*traced.graph, std::span<const Value>(), variables, options);
    marks = exchange->marks_of(compiled);
    late_marks = exchange->late_marks_of(*update);
  }
  StepSums* const sums = exchange ? exchange->step_sums() : nullptr;
  compiled.all_reduce_by([sums](const Operand& values, std::size_t count) {
    if (sums != nullptr) sums->sum(values, count);  // else it is the sum of this rank alone
  });
  accept(traced, std::move(arrival));
  return std::make_shared<StepProgram>(StepProgram{std::move(traced.graph), traced.outputs, traced.loss, traced.terms,
                                                   traced.metrics, std::move(compiled), std::move(update), exchange,
                                                   std::move(marks), std::move(late_marks)});
}

StepProgramPtr Programs::make_stage(const ProgramKey& key) {
  const StagePlan& plan = pipeline_->plan_for([&] { return trace(recipe_, key); });
  Traced traced = trace(recipe_, key, &plan);
  Weights::Arrival arrival = weights_.expect(traced, key);
  const ForwardOrder order(*traced.graph);
  const Stages stages(order, traced.begins, traced.results());
  pipeline_->note_homes(*traced.graph, stages);
  const bool ends_updates = key.purpose == Purpose::train && key.plan.rows > 0;
  if (key.purpose == Purpose::train) pipeline_->note_sharers(traced, ends_updates);
  StageProgram::Parts parts = StageProgram::parts_of(traced, stages, *pipeline_, key.purpose);
  if (key.plan.rows == 0) parts.measure = parts.update = {};  // those of the full batches end an update
  const VariablesPtr variables =
      weights_.storage_for(*traced.graph, key.averaged, variables_of(*traced.graph, parts.run));
  const bool overlaps = key.purpose == Purpose::train && key.plan.rows > 1;
  const int slots = overlaps ? std::min(pipeline_->stages() - pipeline_->stage(), recipe_.minimize.accumulate) : 1;
  const auto stage = std::make_shared<StageProgram>(*pipeline_, traced, stages, std::move(parts), variables,
                                                    options_of(key.purpose), static_cast<std::size_t>(slots));
  if (ends_updates) {
    pipeline_->note_averages({pipeline_->group(), *traced.graph, stages, *variables, VariableRole::average});
  }
  accept(traced, std::move(arrival));
  auto program = std::make_shared<StepProgram>(
      StepProgram{std::move(traced.graph), traced.outputs, traced.loss, traced.terms, traced.metrics, std::nullopt});
  program->stage = stage;
  return program;
}

std::shared_ptr<Exchange> Programs::exchange_of(const Graph& graph) {
  if (graph.exchanged().empty()) return nullptr;
  if (!exchange_ || !exchange_->fits(graph)) {
    exchange_ = std::make_shared<Exchange>(options_.group, weights_.variables(), graph, options_.gradients,
                                           least_ranks(options_) > 0);
  }
  return exchange_;
}

EpochPrograms Programs::of_epoch(ProgramKey key, const EpochPlan& plan) {
  EpochPrograms made;
  key.plan = plan.full;
  const auto make_both = [&] {
    made.full = get(key);
    if (plan.last.size == 0) return;
    ProgramKey last = key;
    last.plan = plan.last;
    made.last = get(last);
  };
  if (pipeline_ != nullptr) {
    pipeline_->share_averages();
    on_all_ranks(pipeline_->group(), "stage", make_both);
    return made;
  }
  if (recipe_.model_parallel.is_on()) {
    make_both();
    return made;
  }
  try {
    make_both();
    return made;
  } catch (const Error&) {
    made = {};
    programs_.remove_if([&](const auto& entry) { return entry.first == key; });
    rethrow_with_advice(key, plan.samples);
  }
}

void Programs::rethrow_with_advice(ProgramKey key, std::int64_t samples) const {
  const Variables& variables = *weights_.variables();
  const auto need_of_one = [&](std::int64_t batch, std::int64_t rows, MemoryDetail detail) {
    key.plan = {batch, rows};
    const Traced traced = trace(recipe_, key);
    return memory_need(*traced.graph, traced.results(), variables, detail, options_of(key.purpose));
  };
  const bool ordered = key.plan.rows > 0;
  rethrow_with_advice_on_batch(key.plan.size, variables.device(), [&](std::int64_t batch, MemoryDetail detail) {
    const std::int64_t last = samples % batch;
    std::size_t bytes = need_of_one(batch, ordered ? samples / batch : 0, detail).total();
    if (last > 0) bytes += need_of_one(last, 0, detail).arena;
    return bytes;
  });
}

}  // namespace concord::train
