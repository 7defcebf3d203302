// Tracing a network between the division of its samples and their joining.
#include "concord/train/model_parallel.hpp"

#include <optional>

#include "concord/core/check.hpp"
#include "concord/nn/channel_norm.hpp"

namespace concord::train {

Values outputs_in_parts(nn::Module& network, const Values& features, const ModelParallel& parallel, int rank,
                        bool divides_samples) {
  if (!parallel.is_on()) return network(features);
  Graph& graph = features[0].graph();
  nn::DividedLayers layers(graph, parallel.division, rank, parallel.ranks);
  if (!divides_samples || parallel.division != nn::Division::hybrid) return layers.all_samples(network(features));
  const Values own = layers.own_samples(features);
  std::optional<nn::SynchronisedStatistics> synchronised;  // of samples that are on several ranks
  if (own[0] != features[0]) synchronised.emplace(graph, rank, parallel.ranks);
  try {
    return layers.all_samples(network(own));
  } catch (const ShapeError& error) {
    throw ShapeError(fmt::format("hybrid parallelism needs a network whose linear layers come last: {}", error.what()));
  }
}

}  // namespace concord::train
