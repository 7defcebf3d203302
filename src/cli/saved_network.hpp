// SavedNetwork: the network and the file of weights that the first words of `evaluate` and `predict` name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "concord/cli/model_file.hpp"
#include "concord/cli/trained.hpp"

namespace concord::cli {

struct SavedNetwork {
  std::string weights;
  Trained trained;  // what the weights say
  const models::Model* model = nullptr;
};

/// Takes the words that name network and weights from the front of `words`: WEIGHTS, where this file says what network
/// it is of; NETWORK WEIGHTS; or with `weights` of --weights NETWORK or nothing. A word is a file of weights by its
/// ending. Throws ArgumentError, with the name of the command, if one of the two is missing.
[[nodiscard]] SavedNetwork take_saved_network(std::vector<std::string>& words, const std::string& weights,
                                              std::string_view command);

}  // namespace concord::cli
