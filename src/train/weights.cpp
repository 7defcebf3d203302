// Variables as programs bring them and files fill them.
#include "concord/train/weights.hpp"

#include <set>
#include <utility>

#include "concord/graph/shard.hpp"
#include "concord/optim/groups.hpp"
#include "concord/optim/minimize.hpp"
#include "concord/weights/load.hpp"

namespace concord::train {
namespace {

Specs without(Specs specs, const std::map<std::string, std::string>& names) {
  std::erase_if(specs, [&](const auto& entry) { return names.contains(entry.first); });
  return specs;
}

}  // namespace

Weights::Weights(const DevicePtr& device, const TrainerOptions& options)
    : is_stage_(options.pipeline.is_on()),
      ema_decay_(options.ema_decay),
      groups_(options.groups),
      variables_(std::make_shared<Variables>(device, options.seed)) {}

bool Weights::are_averaged() const {
  if (ema_decay_ == 0) return false;
  if (variables_->contains(optim::kStep)) return variables_->read(optim::kStep).values<std::int32_t>()[0] > 0;
  return pending_.counter(optim::kStep).value_or(0) > 0;
}

Weights::Arrival Weights::expect(const Traced& traced, const ProgramKey& key) {
  Arrival arrival{.is_training = key.purpose == Purpose::train, .fresh = {}, .network = {}, .loaded = {}};
  const Graph& graph = *traced.graph;
  std::set<std::string> trainable;
  for (const VariablePtr& variable : graph.variables()) {
    if (variable->trainable) trainable.insert(variable->name);
  }
  const auto add = [&](const Variable& variable) {
    if (!variable.shard.is_whole()) arrival.shards.emplace(variable.name, variable.shard);
    if (known_.contains(variable.name)) return;
    const bool is_of_statistic = variable.role == VariableRole::average && !trainable.contains(variable.of);
    if (is_of_statistic && pending_.has_checkpoint() && !pending_.contains(variable.name)) {
      arrival.begun.emplace(variable.name, variable.of);
    }
    arrival.fresh.emplace(variable.name, whole_of(variable.spec, variable.shard));
  };
  for (const VariablePtr& variable : graph.variables()) {
    if (variable->role != VariableRole::transient) add(*variable);
    if (key.averaged && has_average(graph, *variable)) add(optim::average_of(graph, *variable));
  }
  for (const VariablePtr& weight : traced.weights) {
    arrival.network.emplace(weight->name, whole_of(weight->spec, weight->shard));
  }
  pending_.check_checkpoint(without(arrival.fresh, arrival.begun), arrival.is_training);
  arrival.loaded = pending_.read_weights(arrival.network, network_);
  return arrival;
}

VariablesPtr Weights::storage_for(const Graph& graph, bool averaged, std::span<const VariablePtr> needed) {
  if (!averaged) return variables_;
  const auto view = std::make_shared<Variables>(variables_->device_pointer(), variables_->seed());
  for (const VariablePtr& variable : needed) {
    Storage held = variables_->require(variable, variable->name);
    if (has_average(graph, *variable)) held = variables_->require(optim::average_of(graph, *variable));
    view->bind(variable->name, variable->spec, std::move(held));
  }
  return view;
}

bool Weights::has_average(const Graph& graph, const Variable& variable) const {
  if (optim::is_trained(graph, variable, groups_)) return true;
  if (variables_->related(variable.name, VariableRole::average)) return true;  // of one that was frozen later, too
  const bool may_have = variable.role == VariableRole::parameter || variable.role == VariableRole::own;
  return may_have && pending_.contains(optim::average_of(graph, variable).name);
}

void Weights::accept(const Traced& traced, Arrival arrival) {
  for (const VariablePtr& weight : traced.weights) {  // one that a larger network has given its name
    if (is_stage_ || variables_->contains(weight->name)) continue;
    variables_->bind(weight->name, weight->spec, variables_->require(weight, weight->name));
  }
  shards_.merge(arrival.shards);
  if (pending_.has_checkpoint()) {
    pending_.move_to(*variables_, without(arrival.fresh, arrival.begun), shards_);
    for (const auto& [average, of] : arrival.begun) {
      if (variables_->contains(average)) variables_->write(average, variables_->read(of));
    }
  } else {
    start_averages(arrival.fresh);
  }
  if (arrival.is_training) pending_.drop_checkpoint();
  write(arrival.loaded);
  known_.merge(arrival.fresh);
  network_.merge(arrival.network);
}

Shard Weights::shard_of(const std::string& name) const {
  const auto found = shards_.find(name);
  return found == shards_.end() ? Shard{} : found->second;
}

void Weights::load(const std::filesystem::path& path, const io::LoadOptions& options) {
  if (are_known()) write(weights::load_reported(path, network_, options));
  pending_.set_weights(path, options);
}

void Weights::resume(io::Checkpoint checkpoint, const std::filesystem::path& path) {
  pending_.set_checkpoint(std::move(checkpoint), path, known_);
  pending_.move_to(*variables_, known_, shards_);
}

io::TensorMap Weights::persistent() const {
  io::TensorMap tensors;
  // Not what other programs keep in these variables.
  for (const auto& [name, spec] : known_) {
    if (variables_->contains(name)) tensors.emplace(name, variables_->read(name));
  }
  return tensors;
}

io::TensorMap Weights::evaluated() const {
  const bool by_average = are_averaged();
  io::TensorMap tensors;
  for (const auto& [name, spec] : network_) {
    if (!has(name)) continue;
    const auto average = by_average ? variables_->related(name, VariableRole::average) : std::nullopt;
    tensors.emplace(name, variables_->read(average.value_or(name)));
  }
  return tensors;
}

io::TensorMap Weights::all() const {
  io::TensorMap tensors;
  for (const auto& [name, spec] : network_) {
    if (variables_->contains(name)) tensors.emplace(name, variables_->read(name));
    if (const auto average = variables_->related(name, VariableRole::average)) {
      tensors.emplace(*average, variables_->read(*average));
    }
  }
  return tensors;
}

void Weights::write(const io::TensorMap& tensors) {
  for (const auto& [name, tensor] : tensors) {
    if (!has(name)) continue;
    const Tensor own = part_of(tensor, shard_of(name));
    variables_->write(name, own);
    if (const auto average = variables_->related(name, VariableRole::average)) variables_->write(*average, own);
  }
}

void Weights::start_averages(const Specs& fresh) {
  if (!are_averaged()) return;
  for (const auto& [name, of] : variables_->all_related(VariableRole::average)) {
    if (fresh.contains(name)) variables_->write(name, variables_->read(of));
  }
}

}  // namespace concord::train
