// What a graph knows of its division among devices, and the sums that join the parts.
#include "concord/nn/model_parallel.hpp"

#include <set>
#include <utility>
#include <vector>

#include "concord/core/check.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/rank_parts.hpp"

namespace concord::nn {
namespace {

struct Rows {
  std::int64_t begin = 0, end = 0;
  [[nodiscard]] std::int64_t count() const { return end - begin; }
};

struct Place {
  Division division = Division::none;
  int rank = 0, ranks = 1;
  std::int64_t samples = 0;  // of a batch that is divided; 0: none is
  Rows own;                  // of it
  bool is_any_divided = false;
  std::set<std::int32_t> slices, gathered;  // nodes where this rank's samples begin, and where all are together
};

Place& place_of(Graph& graph) { return graph.attached<Place>(); }

/// Whether x is made from this rank's samples, which have not come together with the others yet.
bool has_own_samples(const Place& place, Value x) {
  if (place.samples == 0) return false;
  const Graph& graph = x.graph();
  std::vector<bool> is_seen(static_cast<std::size_t>(graph.size()));
  std::vector<std::int32_t> waiting{x.node_id()};
  while (!waiting.empty()) {
    const std::int32_t id = waiting.back();
    waiting.pop_back();
    if (place.slices.contains(id)) return true;
    if (is_seen[static_cast<std::size_t>(id)] || place.gathered.contains(id)) continue;
    is_seen[static_cast<std::size_t>(id)] = true;
    for (const Value& input : graph.node(id).inputs) waiting.push_back(input.node_id());
  }
  return false;
}

/// Throws where a node reads samples of this rank together with those of all.
void require_one_way(Graph& graph, const Place& place) {
  std::vector<bool> is_own(static_cast<std::size_t>(graph.size())), is_of_all = is_own;
  for (std::int32_t id = 0; id < graph.size(); ++id) {
    const auto here = static_cast<std::size_t>(id);
    bool own = place.slices.contains(id), all = place.gathered.contains(id);
    for (const Value& input : graph.node(id).inputs) {
      own = own || is_own[static_cast<std::size_t>(input.node_id())];
      all = all || is_of_all[static_cast<std::size_t>(input.node_id())];
    }
    if (place.gathered.contains(id)) own = false;
    CONCORD_CHECK(!own || !all, ArgumentError,
                  "hybrid parallelism needs a network whose linear layers come last, but '{}' uses values from before "
                  "and from behind a linear layer together; train it on batches of each device's own, or in stages",
                  graph.node(id).name);
    is_own[here] = own;
    is_of_all[here] = all;
  }
}

}  // namespace

DividedLayers::DividedLayers(Graph& graph, Division division, int rank, int ranks) : graph_(graph) {
  CONCORD_CHECK(rank >= 0 && rank < ranks, ArgumentError, "DividedLayers: there is no rank {} of {}", rank, ranks);
  Place place;
  place.division = division;
  place.rank = rank;
  place.ranks = ranks;
  place_of(graph) = std::move(place);
}

DividedLayers::~DividedLayers() { place_of(graph_) = {}; }

Values DividedLayers::own_samples(const Values& inputs) {
  Place& place = place_of(graph_);
  const std::int64_t samples = inputs[0].shape()[0];
  if (place.division != Division::hybrid || samples < place.ranks) return inputs;
  place.samples = samples;
  place.own = {samples * place.rank / place.ranks, samples * (place.rank + 1) / place.ranks};
  Values own;
  for (const NamedValue& input : inputs) {
    const Value rows = slice(input.value, 0, place.own.begin, place.own.end);
    place.slices.insert(rows.node_id());
    own.add(input.name, rows);
  }
  return own;
}

Values DividedLayers::all_samples(const Values& outputs) {
  const Place& place = place_of(graph_);
  CONCORD_CHECK(place.is_any_divided || place.division != Division::tensor, ArgumentError,
                "tensor parallelism divides the blocks of transformers, and this network has none; train it on batches "
                "of each device's own, in stages, or by hybrid parallelism");
  CONCORD_CHECK(
      place.is_any_divided || place.division != Division::hybrid, ArgumentError,
      "hybrid parallelism divides linear layers, and this network has none with columns for {} devices; train "
      "it on batches of each device's own, or in stages",
      place.ranks);
  Values all;
  for (const NamedValue& output : outputs) all.add(output.name, with_all_samples(output.value));
  require_one_way(graph_, place);
  return all;
}

std::int64_t own_heads(Graph& graph, std::int64_t heads) {
  const Place& place = place_of(graph);
  if (place.division != Division::tensor) return heads;
  CONCORD_CHECK(heads % place.ranks == 0, ArgumentError,
                "{}: tensor parallelism cannot divide {} heads equally among {} devices",
                graph.scoped("attention", '/'), heads, place.ranks);
  return heads / place.ranks;
}

OwnRandomNumbers::OwnRandomNumbers(Graph& graph) {
  const Place& place = place_of(graph);
  if (place.division == Division::tensor) scope_.emplace(graph, "rank" + std::to_string(place.rank));
}

OwnRandomNumbers::OwnRandomNumbers(Value x) {
  const Place& place = place_of(x.graph());
  if (has_own_samples(place, x)) scope_.emplace(x.graph(), "rank" + std::to_string(place.rank));
}

Shard shard_of_columns(Graph& graph, Division division, std::int64_t outputs, std::int64_t blocks) {
  Place& place = place_of(graph);
  if (place.division != division || division == Division::none) return {};
  if (outputs % (place.ranks * blocks) != 0) {
    CONCORD_CHECK(division == Division::hybrid, ArgumentError,
                  "{}: tensor parallelism cannot divide {} columns equally among {} devices",
                  graph.scoped("linear", '/'), outputs / blocks, place.ranks);
    return {};  // such as the scores of ten classes on three devices
  }
  place.is_any_divided = true;
  return {place.rank, place.ranks, 0, blocks};
}

Value with_all_samples(Value x) {
  Place& place = place_of(x.graph());
  if (!has_own_samples(place, x)) return x;
  CONCORD_CHECK(x.shape().rank() > 0 && x.shape()[0] == place.own.count(), ArgumentError,
                "{}: hybrid parallelism needs samples in the first dimension, but for {} of them there is {}", x.name(),
                place.own.count(), x.shape().str());
  const Value all = all_gather_parts(x, 0, place.own.begin, place.samples);
  place.gathered.insert(all.node_id());
  return all;
}

Value with_all_columns(Value x, const Shard& shard) {
  const std::int64_t own = x.shape()[-1];
  return all_gather_parts(x, x.shape().rank() - 1, own * shard.rank, own * shard.ranks);
}

}  // namespace concord::nn
