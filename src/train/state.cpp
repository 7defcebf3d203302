// TrainerState: data sets on the device, compiled programs, and what was loaded for them.
#include "concord/train/state.hpp"

#include <algorithm>
#include <numeric>

#include "concord/core/check.hpp"
#include "concord/core/log.hpp"

namespace concord {
namespace {

/// Sets that a trainer keeps at hand: for training, for validation and two more.
constexpr std::size_t kMostSets = 4;

/// Checkpoints of before losses had weights do not say what gathered batches weighed. Between updates that is nothing;
/// within one it is not known, and the tensor is missing.
void complete(io::Checkpoint& checkpoint, const std::map<std::string, TensorSpec>& expected) {
  const auto gathered = checkpoint.tensors.find(optim::kGathered);
  if (gathered == checkpoint.tensors.end() || !expected.contains(optim::kGatheredWeight)) return;
  if (gathered->second.spec() != TensorSpec{DType::i32, Shape{}} || gathered->second.values<std::int32_t>()[0] != 0)
    return;
  checkpoint.tensors.try_emplace(optim::kGatheredWeight, Tensor::of<float>(Shape{}, std::vector<float>{0}));
}

bool holds(const DeviceCopies::Copy& copy, const Dataset& dataset) {
  return copy.features_source.bytes().data() == dataset.features.bytes().data() &&
         copy.labels_source.bytes().data() == dataset.labels.bytes().data() &&
         copy.features_source.spec() == dataset.features.spec();
}

}  // namespace

bool TrainerState::is_resident(const Dataset& dataset) const {
  return std::ranges::any_of(resident, [&](const auto& set) { return holds(set.copy, dataset); });
}

void TrainerState::check_fits(const Dataset& dataset, train::Purpose purpose, std::int64_t batch,
                              const NamedMetrics& metrics) const {
  const train::Source source{{}, dataset.feature_spec(), dataset.label_spec(), dataset.scale, dataset.shift};
  static_cast<void>(train::trace(recipe, {purpose, source, {batch, 0}, 0, false, metrics}, dataset.classes));
}

void TrainerState::check(const Dataset& dataset) const {
  if (data::labels_in_range(dataset)) return data::check(dataset);
  const train::Source source{{}, dataset.feature_spec(), dataset.label_spec(), dataset.scale, dataset.shift};
  data::check(dataset, train::trace(recipe, {train::Purpose::evaluate, source, {1, 0}, 0}, 0).ignored);
}

train::Source TrainerState::source_of(const Dataset& dataset, bool may_reside) {
  train::Source streamed{{}, dataset.feature_spec(), dataset.label_spec(), dataset.scale, dataset.shift};
  if (!may_reside) return streamed;
  const auto as_source = [&](const std::string& id) {
    return train::Source{id, dataset.features.spec(), dataset.labels.spec(), dataset.scale, dataset.shift};
  };
  const auto found = std::ranges::find_if(resident, [&](const auto& set) { return holds(set.copy, dataset); });
  if (found != resident.end()) {
    resident.splice(resident.begin(), resident, found);
    return as_source(found->id);
  }
  if (resident.size() == kMostSets) {
    const auto unused = std::prev(resident.end(), resident.back().id == trained_set ? 2 : 1);
    programs.drop(unused->id);
    variables->erase(unused->id + ".features");
    variables->erase(unused->id + ".labels");
    resident.erase(unused);
  }
  std::size_t bytes = dataset.bytes();
  for (const ResidentSet& set : resident) bytes += set.copy.features->bytes() + set.copy.labels->bytes();
  const DeviceInfo& info = device->info();
  const std::size_t largest = std::max(dataset.features.spec().bytes(), dataset.labels.spec().bytes());
  const bool fits = device->allocated() + dataset.bytes() <= info.memory &&
                    static_cast<double>(bytes) <= options.resident_fraction * static_cast<double>(info.memory) &&
                    (info.max_allocation == 0 || largest <= info.max_allocation);
  const auto stream = [&] {
    log(LogLevel::info, fmt::format("data set of {} MiB is streamed: {} has {} MiB, {} in use", dataset.bytes() >> 20,
                                    info.name, info.memory >> 20, device->allocated() >> 20));
    return streamed;
  };
  if (!fits) return stream();
  DeviceCopies::Copy copy;
  try {
    copy = train::copy_to_device(dataset, device);
  } catch (const OutOfMemory&) {  // others hold what the device seemed to have
    return stream();
  }
  const std::string id = fmt::format("data.{}", sets_seen++);
  variables->bind(id + ".features", dataset.features.spec(), copy.features);
  variables->bind(id + ".labels", dataset.labels.spec(), copy.labels);
  resident.push_front({id, copy});
  return as_source(id);
}

VariablesPtr TrainerState::with_averages(const Graph& graph) {
  const auto view = std::make_shared<Variables>(device, variables->seed());
  for (const VariablePtr& variable : graph.variables()) {
    BufferPtr held = variables->require(variable, variable->name);
    // Those of parameters that were frozen later stay.
    const bool has_average = optim::is_trained(graph, *variable, options.groups) ||
                             variables->related(variable->name, VariableRole::average).has_value();
    if (has_average) held = variables->require(optim::average_of(graph, *variable));
    view->bind(variable->name, variable->spec, std::move(held));
  }
  return view;
}

CompileOptions TrainerState::options_of(train::Purpose purpose) const {
  return {.precision = options.precision,
          .memory_budget = purpose == train::Purpose::train ? options.memory_budget : 0};
}

train::StepProgramPtr TrainerState::program(const train::ProgramKey& key, int classes) {
  if (train::StepProgramPtr cached = programs.find(key)) return cached;
  train::Traced traced = train::trace(recipe, key, classes);
  std::vector<Value> outputs;
  outputs.push_back(traced.loss ? traced.loss : traced.output);
  std::map<std::string, TensorSpec> fresh, traced_weights;
  for (const VariablePtr& variable : traced.graph->variables()) {
    if (variable->role != VariableRole::transient && !known.contains(variable->name)) {
      fresh.emplace(variable->name, variable->spec);
    }
    if (!key.averaged || !optim::is_trained(*traced.graph, *variable, options.groups)) continue;
    const Variable average = optim::average_of(*traced.graph, *variable);
    if (!known.contains(average.name)) fresh.emplace(average.name, average.spec);
  }
  for (const VariablePtr& weight : traced.weights) traced_weights.emplace(weight->name, weight->spec);
  // All files are checked before anything is taken from them: a program that they do not fit is not kept.
  const bool all = key.purpose == train::Purpose::train;
  if (pending_checkpoint) complete(*pending_checkpoint, fresh);
  if (pending_checkpoint) check_checkpoint(*pending_checkpoint, checkpoint_path, fresh, all);
  io::TensorMap loaded;
  if (pending_weights) loaded = pending_weights->load(traced_weights);
  Program compiled =
      compile(*traced.graph, outputs, key.averaged ? with_averages(*traced.graph) : variables, options_of(key.purpose));
  for (const VariablePtr& weight : traced.weights) {  // one that a larger network has given its name
    if (variables->contains(weight->name)) continue;
    variables->bind(weight->name, weight->spec, variables->require(weight, weight->name));
  }
  if (pending_checkpoint) take_from_checkpoint(fresh);
  if (!pending_checkpoint) start_averages(fresh);
  if (all) pending_checkpoint.reset();
  write_weights(loaded);
  pending_weights.reset();
  known.merge(fresh);
  weights.merge(traced_weights);
  const auto made = std::make_shared<train::StepProgram>(train::StepProgram{
      std::move(traced.graph), traced.output, traced.loss, traced.terms, traced.metrics, std::move(compiled)});
  programs.add(key, made);
  return made;
}

void TrainerState::check_checkpoint(const io::Checkpoint& checkpoint, const std::filesystem::path& path,
                                    const std::map<std::string, TensorSpec>& expected, bool all) {
  const std::string what = fmt::format("{}: checkpoint of another network, optimizer or moving average", path.string());
  if (all) return io::check_tensors(checkpoint.tensors, expected, what);
  io::TensorMap needed;
  for (const auto& [name, tensor] : checkpoint.tensors) {
    if (expected.contains(name)) needed.emplace(name, tensor);
  }
  io::check_tensors(needed, expected, what);
}

void TrainerState::take_from_checkpoint(const std::map<std::string, TensorSpec>& names) {
  for (const auto& [name, spec] : names) {
    variables->write(name, pending_checkpoint->tensors.at(name));
    pending_checkpoint->tensors.erase(name);
  }
}

bool TrainerState::averaged() const {
  if (options.ema_decay == 0 || at.updates == 0) return false;
  if (variables->contains(optim::kStep)) return variables->read(optim::kStep).values<std::int32_t>()[0] > 0;
  return !pending_checkpoint || pending_checkpoint->tensors.at(optim::kStep).values<std::int32_t>()[0] > 0;
}

void TrainerState::start_averages(const std::map<std::string, TensorSpec>& fresh) {
  if (!averaged()) return;
  for (const auto& [name, of] : variables->all_related(VariableRole::average)) {
    if (fresh.contains(name)) variables->write(name, variables->read(of));
  }
}

double TrainerState::loss_so_far(std::span<const LossTerm::Kind> terms, std::int64_t samples) const {
  double loss = 0;
  for (std::size_t t = 0; t < terms.size(); ++t) {
    auto divisor = static_cast<double>(samples);
    if (terms[t] == LossTerm::Kind::total) divisor = 1;
    if (terms[t] == LossTerm::Kind::weighted) {
      divisor = static_cast<double>(scalar(train::loss_weight_name("train", t)));
    }
    loss += static_cast<double>(scalar(train::loss_sum_name("train", t))) / divisor;
  }
  return loss;
}

void TrainerState::set_scalar(const std::string& name, float value) {
  if (!variables->contains(name)) return;
  variables->write(name, Tensor::of<float>(Shape{1}, std::vector<float>{value}));
}

float TrainerState::scalar(const std::string& name) const { return variables->read(name).values<float>()[0]; }

io::TensorMap TrainerState::persistent() const {
  io::TensorMap tensors;
  // Not what other programs keep in these variables.
  for (const auto& [name, spec] : known) {
    if (variables->contains(name)) tensors.emplace(name, variables->read(name));
  }
  return tensors;
}

std::string TrainerState::evaluated_name(const std::string& weight) const {
  return variables->related(weight, VariableRole::average).value_or(weight);
}

io::TensorMap TrainerState::evaluated_weights() const {
  const bool by_average = averaged();
  io::TensorMap tensors;
  for (const auto& [name, spec] : weights) {
    tensors.emplace(name, variables->read(by_average ? evaluated_name(name) : name));
  }
  return tensors;
}

io::TensorMap TrainerState::read_weights() const {
  io::TensorMap tensors;
  for (const auto& [name, spec] : weights) {
    if (variables->contains(name)) tensors.emplace(name, variables->read(name));
    if (const auto average = variables->related(name, VariableRole::average)) {
      tensors.emplace(*average, variables->read(*average));
    }
  }
  return tensors;
}

void TrainerState::write_weights(const io::TensorMap& tensors) {
  for (const auto& [name, tensor] : tensors) {
    variables->write(name, tensor);
    if (const auto average = variables->related(name, VariableRole::average)) variables->write(*average, tensor);
  }
}

std::map<std::string, std::string> TrainerState::settings() const {
  return {{"clip_norm", fmt::format("{}", options.clip.norm)},
          {"clip_value", fmt::format("{}", options.clip.value)},
          {"ema_decay", fmt::format("{}", options.ema_decay)},
          {"precision", std::string(name_of(options.precision))}};
}

namespace train {

EpochPlan plan_epoch(std::int64_t samples, std::int64_t batch, LastBatch last) {
  CONCORD_CHECK(batch >= 1, ArgumentError, "the batch must have one sample or more, got {}", batch);
  CONCORD_CHECK(samples >= 1, ArgumentError, "the data set is empty");
  EpochPlan plan;
  plan.all = plan.samples = samples;
  plan.full.size = std::min(batch, samples);
  plan.full.rows = samples / plan.full.size;
  plan.last.size = samples % plan.full.size;
  if (plan.last.size > 0 && last == LastBatch::drop) {
    plan.samples -= plan.last.size;
    plan.last.size = 0;
  }
  if (plan.last.size > 0 && last == LastBatch::merge) {
    if (--plan.full.rows == 0) {
      plan.full = {samples, 1};
      plan.last.size = 0;
    } else {
      plan.last.size += plan.full.size;
    }
  }
  plan.last.first = plan.samples - plan.last.size;
  CONCORD_CHECK(plan.full.rows < std::int64_t{1} << 24, ArgumentError,
                "an epoch of {} batches is too long (at most 2^24 - 1); use a larger batch", plan.full.rows);
  return plan;
}

std::vector<std::int32_t> order_of(const EpochPlan& plan, bool shuffle, std::uint64_t seed, std::int64_t epoch) {
  std::vector<std::int32_t> order(static_cast<std::size_t>(plan.all));
  std::iota(order.begin(), order.end(), 0);
  if (shuffle) order = data::permutation(plan.all, seed, static_cast<std::uint32_t>(epoch));
  order.resize(static_cast<std::size_t>(plan.samples));
  return order;
}

}  // namespace train
}  // namespace concord
