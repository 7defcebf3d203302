// Tensors that files of weights have beside those of a network, and that loading leaves out if the network does not
// have them. Internal to the library.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "concord/core/tensor.hpp"

namespace concord::io {

/// The end of its name.
inline constexpr std::string_view kBatchCounter = "num_batches_tracked";

/// PyTorch's batch-norm layers count batches beside their running mean; the counter has no influence with a momentum.
inline bool is_batch_counter(std::string_view name, const std::map<std::string, TensorSpec>& network) {
  if (!name.ends_with(kBatchCounter)) return false;
  return network.contains(std::string(name.substr(0, name.size() - kBatchCounter.size())) + "running_mean");
}

/// Classifiers that only the training of GoogLeNet and Inception v3 calls, by torchvision's names: a file of all that
/// the network has may have them beside it.
inline bool is_auxiliary(std::string_view name) {
  return name.starts_with("aux1.") || name.starts_with("aux2.") || name.starts_with("AuxLogits.");
}

}  // namespace concord::io
