// Variables and parts of variables on their way to rank 0, in the order of their names, which is the same on all ranks.
#include <string>

#include "concord/core/check.hpp"
#include "concord/graph/shard.hpp"
#include "concord/train/state.hpp"
#include "concord/train/step_variables.hpp"
#include "concord/train/survivors.hpp"

namespace concord::train {
namespace {

/// `own`: those of `specs` that this rank has.
io::TensorMap gather(const PipelineRank& rank, const Specs& specs, io::TensorMap own) {
  const timeline::Span span("gather weights");
  io::TensorMap all;
  for (const auto& [name, spec] : specs) {
    const int home = rank.home(name);
    const auto found = own.find(name);
    std::byte is_there{found != own.end()};
    if (home == 0) {
      if (rank.is_first() && found != own.end()) all.emplace(name, std::move(found->second));
    } else if (rank.stage() == home) {
      rank.group().send({&is_there, 1}, 0);
      if (found != own.end()) rank.group().send(found->second.bytes(), 0);
    } else if (rank.is_first()) {
      rank.group().receive({&is_there, 1}, home);
      if (is_there == std::byte{0}) continue;
      Tensor tensor = Tensor::unset(spec);
      rank.group().receive(tensor.bytes(), home);
      all.emplace(name, std::move(tensor));
    }
  }
  return all;
}

/// Puts the parts of all ranks together. `own`: those of this rank, and what is whole.
io::TensorMap gather(const Ranks& ranks, const Weights& weights, io::TensorMap own) {
  const timeline::Span span("gather weights");
  for (auto& [name, tensor] : own) {
    Shard shard = weights.shard_of(name);
    if (shard.is_whole()) continue;
    if (ranks.rank() != 0) {
      ranks.group()->send(tensor.bytes(), 0);
      continue;
    }
    Tensor whole = Tensor::unset(whole_of(tensor.spec(), shard));
    for (shard.rank = 0; shard.rank < shard.ranks; ++shard.rank) {
      if (shard.rank > 0) ranks.group()->receive(tensor.bytes(), shard.rank);
      put_part(whole, tensor, shard);
    }
    tensor = std::move(whole);
  }
  return own;
}

}  // namespace

io::TensorMap gather_evaluated(const TrainerState& state) {
  io::TensorMap own = state.weights.evaluated();
  if (state.options.model_parallel.is_on()) return gather(state.ranks, state.weights, std::move(own));
  return state.pipeline ? gather(*state.pipeline, state.weights.network(), std::move(own)) : own;
}

io::TensorMap gather_persistent(const TrainerState& state) {
  io::TensorMap own = state.weights.persistent();
  if (state.options.model_parallel.is_on()) return gather(state.ranks, state.weights, std::move(own));
  if (!state.pipeline) return own;
  io::TensorMap all = gather(*state.pipeline, state.weights.known(), std::move(own));
  if (state.weights.known().contains(kRandomState) && state.pipeline->is_first()) {
    const std::int64_t batches = state.at.batch > 0 ? state.at.position / state.at.batch : 0;
    all.insert_or_assign(kRandomState, random_state_of(state.at.seed, state.at.epoch, batches));
  }
  return all;
}

io::TensorMap gather_best(const TrainerState& state) {
  io::TensorMap own = state.best->weights();
  if (state.best->are_whole()) return own;
  if (state.options.model_parallel.is_on()) return gather(state.ranks, state.weights, std::move(own));
  return state.pipeline ? gather(*state.pipeline, state.weights.known(), std::move(own)) : own;
}

namespace {

/// Where each rank has the whole network.
void write_and_wait(TrainerState& state, const std::function<void()>& write) {
  for (;;) {
    if (state.ranks.rank() == 0) write();
    try {
      return state.ranks.wait();
    } catch (const RankLost& lost) {
      if (least_ranks(state.options) == 0) return;  // what needs the other ranks says so
      if (state.is_in_fit) throw;
      go_on_with_survivors(state, lost, {});
    }
  }
}

}  // namespace

void write_on_first_rank(TrainerState& state, const std::function<void()>& write) {
  if (!state.is_divided()) return write_and_wait(state, write);
  std::string failure;
  try {
    if (state.ranks.rank() == 0) write();
  } catch (const IoError& error) {
    failure = error.what();
  }
  if (!state.ranks.any(!failure.empty())) return;
  throw IoError(failure.empty() ? "rank 0 could not write the file; it says why" : failure);
}

}  // namespace concord::train
