// A network that is divided among ranks, as one of them traces it. Internal to the room.
#pragma once

#include "concord/graph/values.hpp"
#include "concord/nn/module.hpp"
#include "concord/train/options.hpp"

namespace concord::train {

/// The outputs of the network for all samples, of which this rank computes its part; all, if the network is not
/// divided. `divides_samples`: as far as the division says so; else each rank has all samples everywhere. Throws
/// ArgumentError or ShapeError if the network cannot be divided so.
[[nodiscard]] Values outputs_in_parts(nn::Module& network, const Values& features, const ModelParallel& parallel,
                                      int rank, bool divides_samples);

}  // namespace concord::train
