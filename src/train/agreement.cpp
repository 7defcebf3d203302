// Hashes of what is too large to compare.
#include "concord/train/agreement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "concord/data/selection.hpp"
#include "concord/train/trace.hpp"

namespace concord::train {
namespace {

/// FNV-1a over words of 64 bits (Fowler, Noll and Vo), which finds different values, not forged ones.
class Hash {
 public:
  void add(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      std::uint64_t word = 0;
      const std::size_t count = std::min(bytes.size(), sizeof(word));
      std::memcpy(&word, bytes.data(), count);
      value_ = (value_ ^ word) * 0x100000001B3;
      value_ ^= value_ >> 29;
      bytes = bytes.subspan(count);
    }
  }
  void add(std::string_view text) { add(std::as_bytes(std::span(text))); }
  void add(const TensorSpec& spec) { add(spec.str()); }
  [[nodiscard]] std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xCBF29CE484222325;
};

std::uint64_t hash_of_weights(const TrainerState& state) {
  Hash hash;
  for (const auto& [name, tensor] : state.weights.persistent()) {
    if (!state.weights.shard_of(name).is_whole()) continue;
    if (name == cursor_name("train") || name == kRandomState) continue;  // of each rank's own
    hash.add(name);
    hash.add(tensor.bytes());
  }
  return hash.value();
}

/// Of the columns, and of samples from the beginning, the middle and the end; of a stream the first sample.
std::uint64_t hash_of_data(const Samples& data, std::uint64_t seed) {
  Hash hash;
  for (const std::vector<ColumnSpec>& columns : {data.feature_specs(), data.label_specs()}) {
    for (const ColumnSpec& column : columns) {
      hash.add(column.name);
      hash.add(column.spec);
    }
  }
  const auto last = static_cast<std::int32_t>(data.size() - 1);
  std::vector<std::int32_t> looked_at{0};
  if (!data.is_sequential()) looked_at.insert(looked_at.end(), {last / 2, last});
  const Dataset rows = data::read_rows(data, looked_at, seed, 0);
  for (const std::vector<Column>& columns : {rows.feature_columns(), rows.label_columns()}) {
    for (const Column& column : columns) hash.add(column.values.bytes());
  }
  return hash.value();
}

std::uint64_t hash_of_split(const TrainerState& state) {
  Hash hash;
  hash.add(state.options.split.by_speed ? "by speed" : "by shares");
  hash.add(std::as_bytes(std::span(state.ranks.shares())));
  return hash.value();
}

/// Of a step: network, losses, optimizer and what clips and averages.
std::uint64_t hash_of_step(const TrainerState& state, const Samples& data, std::int64_t batch) {
  if (state.is_divided()) return 0;  // each rank has another part
  const std::int64_t samples = state.ranks.are_split() ? 2 : std::min(batch, data.size());  // parts differ in size
  Recipe recipe = state.recipe;
  recipe.minimize.ranks = recipe.minimize.accumulate = 1;
  recipe.rank = 0;
  const Traced traced = trace(recipe, {Purpose::train, streamed_source(data), {samples, 1}});
  Hash hash;
  for (std::int32_t id = 0; id < traced.graph->size(); ++id) {
    const Node& node = traced.graph->node(id);
    if (node.op) {
      hash.add(node.op->name());
      hash.add(node.op->attributes());
    }
    for (const Value& input : node.inputs) hash.add(fmt::format("{}.{}", input.node_id(), input.output()));
    for (const TensorSpec& spec : node.outputs) hash.add(spec);
  }
  return hash.value();
}

/// Of what decides how many steps there are, in which order and at which rate.
std::uint64_t hash_of_fit(const FitOptions& options) {
  std::string text =
      fmt::format("{} {} {} {} {} {} {} {}", options.schedule.description(), options.shuffle, options.balance,
                  static_cast<int>(options.last_batch), options.max_steps, options.mixing.mixup, options.mixing.cutmix,
                  options.validate ? options.validate->size() : 0);
  for (const auto& [name, metric] : options.metrics) text += ' ' + name;
  if (const auto& stopping = options.early_stopping) {
    text += fmt::format(" {} {} {} {} {} {}", static_cast<int>(stopping->monitor), stopping->metric,
                        stopping->larger_is_better, stopping->patience, stopping->min_delta, stopping->restore_best);
  }
  Hash hash;
  hash.add(text);
  return hash.value();
}

std::uint64_t unsigned_of(std::int64_t number) { return static_cast<std::uint64_t>(number); }

}  // namespace

void require_equal_ranks(const TrainerState& state, const Samples& data, const FitOptions& options) {
  if (!state.ranks.are_several()) return;
  const std::vector<Agreed> values{
      {"the seeds", state.at.seed},
      {"the numbers of epochs", unsigned_of(options.epochs)},
      {"the batch sizes", unsigned_of(options.batch)},
      {"the batches per update", unsigned_of(state.at.accumulate)},
      {"the steps done", unsigned_of(state.at.step)},
      {"the numbers of samples", unsigned_of(data.size())},
      {"the samples", hash_of_data(data, state.at.seed), true},
      {"the networks, losses or optimizers, or their settings", hash_of_step(state, data, options.batch), true},
      {"the precisions", static_cast<std::uint64_t>(state.options.precision)},
      {"the schedules, validations or other options of the training", hash_of_fit(options), true},
      {"the batches of a pipeline", unsigned_of(state.options.pipeline.micro)},
      {"the divisions of the network", static_cast<std::uint64_t>(state.options.model_parallel.division)},
      {"the splits of batches", hash_of_split(state), true},
      {"the precisions of exchanged gradients", static_cast<std::uint64_t>(state.options.gradients)},
      {"the choices of synchronised batch norm", state.options.sync_batch_norm ? 1U : 0U},
  };
  state.ranks.require_equal(values);
}

void require_equal_weights(const TrainerState& state) {
  if (!state.ranks.are_several() || state.pipeline) return;
  state.ranks.require_equal(std::vector<Agreed>{{"the weights", hash_of_weights(state), true}});
}

}  // namespace concord::train
