// Stages of a step: their programs, and values on their way between them through the group.
#include "concord/train/pipeline.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "concord/collective/gathered.hpp"
#include "concord/core/check.hpp"
#include "concord/core/log.hpp"
#include "concord/core/timeline.hpp"
#include "concord/train/source.hpp"

namespace concord::train {
namespace {

void append(std::vector<Value>& all, const std::vector<Value>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

}  // namespace

const StagePlan& PipelineRank::plan_for(const std::function<Traced()>& traced) {
  if (plan_) return *plan_;
  const std::vector<std::uint64_t> memory = collective::gathered(*group_, memory_);
  const Traced whole = traced();
  plan_.emplace(*whole.graph, whole.results(), std::vector<std::size_t>(memory.begin(), memory.end()));
  log(LogLevel::info, fmt::format("stage {} of {}; the stages begin at {}", stage(), stages(),
                                  fmt::join(plan_->first_parameters(), ", ")));
  return *plan_;
}

void PipelineRank::note_homes(Graph& graph, const Stages& stages) {
  for (std::int32_t id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    if (node.variable) homes_.emplace(node.variable->name, stages.of(Value(&graph, id, 0)));
  }
}

void PipelineRank::note_sharers(const Traced& traced, bool ends_updates) {
  if (ends_updates) sharers_.clear();
  for (const optim::SharedGradient& shared : traced.staged.shared) {
    std::set<int>& sharers = sharers_[shared.landing.name()];
    for (const auto& [stage, part] : shared.parts) {
      const bool is_new = sharers.insert(stage).second;
      CONCORD_CHECK(ends_updates || !is_new, NotSupported,
                    "other stages share '{}' in batches of another size; choose a batch size that divides the samples",
                    shared.landing.node().variable->of);
    }
  }
}

int PipelineRank::home(const std::string& variable) const {
  const auto found = homes_.find(variable);
  return found == homes_.end() ? 0 : std::max(found->second, 0);
}

void PipelineRank::share_averages() {
  if (are_averages_new_ && averages_) averages_->send();
  are_averages_new_ = false;
}

StageProgram::Parts StageProgram::parts_of(const Traced& traced, const Stages& stages, const PipelineRank& rank,
                                           Purpose purpose) {
  const int stage = rank.stage();
  const bool trains = purpose == Purpose::train;
  Parts parts;
  if (!rank.is_first()) parts.from_before = stages.forward(stage - 1);
  if (!rank.is_last()) parts.to_behind = stages.forward(stage);
  if (trains && !rank.is_last()) parts.from_behind = stages.backward(stage);
  if (trains && !rank.is_first()) parts.to_before = stages.backward(stage - 1);
  append(parts.run.given, parts.from_before);
  append(parts.run.given, parts.from_behind);
  append(parts.run.outputs, parts.to_behind);
  append(parts.run.outputs, parts.to_before);
  parts.run.assignments = stages.assignments(stage, trains);
  if (!trains) {
    if (rank.is_last()) append(parts.run.outputs, traced.results());
    return parts;
  }
  // Batches overlap, so each has its place in the epoch and its random state in its own memory.
  parts.run.given.push_back(traced.cursor);
  if (const Value random = traced.graph->used_random_state()) parts.run.given.push_back(random);
  parts.run.before_pause = parts.to_behind;
  const auto own = static_cast<std::size_t>(stage);
  const std::vector<Assignment>& measures = traced.staged.measures;
  if (own < measures.size() && measures[own].variable) parts.measure.assignments.push_back(measures[own]);
  parts.update.assignments = stages.assignments(stage, false);
  return parts;
}

StageProgram::StageProgram(const PipelineRank& rank, const Traced& traced, const Stages& stages, Parts parts,
                           const VariablesPtr& variables, const CompileOptions& options, std::size_t slots)
    : rank_(rank), variables_(variables), parts_(std::move(parts)), measures_(traced.staged.measures) {
  const Graph& graph = *traced.graph;
  slots_.push_back(compile_section(graph, parts_.run, variables, options));
  while (slots_.size() < slots) slots_.push_back(slots_.front().twin());
  from_before_ = wires(parts_.from_before, true);
  from_behind_ = wires(parts_.from_behind, true);
  to_behind_ = wires(parts_.to_behind, false);
  to_before_ = wires(parts_.to_before, false);
  if (parts_.update.assignments.empty()) return;
  const auto bytes_of = [](const std::vector<Wire>& wires) {
    return std::transform_reduce(wires.begin(), wires.end(), std::size_t{0}, std::plus<>(),
                                 [](const Wire& wire) { return wire.spec.bytes(); });
  };
  CompileOptions without_budget = options;  // nothing is computed again
  without_budget.memory_budget = 0;
  if (!parts_.measure.assignments.empty()) measure_ = compile_section(graph, parts_.measure, variables, without_budget);
  update_ = compile_section(graph, parts_.update, variables, without_budget);
  shared_gradients_.emplace(rank.group(), traced, variables, without_budget);
  shared_values_.emplace(rank.group(), graph, stages, *variables, VariableRole::parameter);
  log(LogLevel::info, fmt::format("stage {} sends {} bytes forward and {} bytes back for each batch", rank.stage(),
                                  bytes_of(to_behind_), bytes_of(to_before_)));
}

std::vector<StageProgram::Wire> StageProgram::wires(const std::vector<Value>& values, bool lands) const {
  Device& device = variables_->device();
  std::vector<Wire> all;
  for (const Value& value : values) {
    const std::size_t bytes = value.spec().bytes();
    all.push_back({value.name(), value.spec(), device.allocate_staging(bytes), lands ? device.allocate(bytes) : nullptr,
                   nullptr, nullptr});
  }
  return all;
}

void StageProgram::send(Program& program, std::vector<Wire>& values, int to) const {
  Device& device = variables_->device();
  const EventPtr made = device.record();
  for (Wire& wire : values) {
    const std::size_t bytes = wire.spec.bytes();
    if (const std::optional<Operand> from = program.output(wire.name)) {
      wire.moved = device.download_async(*from->buffer, from->offset, wire.staging, bytes, made);
    } else {
      std::ranges::copy(program.read(wire.name).bytes(), wire.staging->bytes().begin());
      wire.moved = nullptr;
    }
  }
  device.flush();
  for (Wire& wire : values) {
    if (wire.moved) {
      const timeline::Span span("wait for the device");
      wire.moved->wait();
    }
    const timeline::Span span("send to a stage");
    rank_.group().send(wire.staging->bytes().first(wire.spec.bytes()), to);
  }
}

void StageProgram::receive(Program& program, std::vector<Wire>& values, int from) const {
  Device& device = variables_->device();
  for (Wire& wire : values) {
    const std::size_t bytes = wire.spec.bytes();
    if (wire.moved) wire.moved->wait();
    {
      const timeline::Span span("wait for a stage");
      rank_.group().receive(wire.staging->bytes().first(bytes), from);
    }
    wire.moved = device.write_async(*wire.landing, 0, wire.staging, bytes, wire.taken);
  }
  for (Wire& wire : values) {
    device.wait_for(wire.moved);
    const Operand to = program.input(wire.name);
    device.copy(*wire.landing, 0, *to.buffer, to.offset, wire.spec.bytes());
  }
  const EventPtr taken = device.record();
  for (Wire& wire : values) wire.taken = taken;
}

void StageProgram::run(const Feed& feed) {
  Program& program = slots_.front();
  feed(program);
  receive_forward(0);
  program.run();
  send_forward(0);
}

Tensor StageProgram::read(const Value& value) {
  Tensor tensor = rank_.is_last() ? slots_.front().read(value) : Tensor::unset(value.spec());
  rank_.share(tensor.bytes(), rank_.last());
  return tensor;
}

void StageProgram::run_forward(std::size_t slot, const Feed& feed) {
  Program& program = slots_[slot];
  feed(program);
  if (program.pauses()) {
    program.run_before_pause();
  } else {
    program.run();
  }
}

void StageProgram::run_backward(std::size_t slot) {
  if (slots_[slot].pauses()) slots_[slot].run_after_pause();
}

void StageProgram::end_update() {
  const timeline::Span span("update in stages");
  shared_gradients_.value().add();
  share_numbers();
  share_measures();
  update_.value().run();
  shared_values_.value().send();
}

void StageProgram::share_numbers() {
  for (const char* name : {optim::kExchangedNumbers, kExchangedCounts}) {
    Tensor numbers = variables_->read(name);
    rank_.share(numbers.bytes(), rank_.last());
    if (!rank_.is_last()) variables_->write(name, numbers);
    if (name == optim::kExchangedNumbers && failure_.empty() && !std::isfinite(numbers.values<float>()[0])) {
      failure_ = "the loss";
    }
  }
}

void StageProgram::share_measures() {
  if (measures_.empty()) return;
  if (measure_) measure_->run();
  std::size_t most = 0;
  for (const Assignment& of_stage : measures_) {
    if (of_stage.variable) most = std::max(most, of_stage.variable.spec().bytes());
  }
  std::vector<std::byte> all(most * measures_.size());
  const auto part = [&](std::size_t stage) { return std::span(all).subspan(stage * most, most); };
  const auto own = static_cast<std::size_t>(rank_.stage());
  if (measures_[own].variable) {
    const Tensor measured = variables_->read(measures_[own].variable.name());
    std::ranges::copy(measured.bytes(), part(own).begin());
  }
  rank_.group().all_gather(all, most);
  for (std::size_t stage = 0; stage < measures_.size(); ++stage) {
    const Value variable = measures_[stage].variable;
    if (!variable) continue;
    Tensor measured = Tensor::unset(variable.spec());
    std::ranges::copy(part(stage).first(measured.bytes().size()), measured.bytes().begin());
    if (stage != own) variables_->write(variable.name(), measured);
    if (failure_.empty() && measured.values<float>().back() == 0) {
      failure_ = fmt::format("the loss is finite, but a gradient of stage {}", stage);
    }
  }
}

}  // namespace concord::train
