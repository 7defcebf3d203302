// SavedNetwork: the network and the file of weights that the first words of `evaluate` and `predict` name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "concord/cli/model_file.hpp"
#include "concord/cli/options.hpp"
#include "concord/cli/trained.hpp"

namespace concord::cli {

struct SavedNetwork {
  std::string weights;           // the file that has them
  bool has_own_weights = false;  // `weights` is the ONNX file of the network
  Trained trained;               // what the weights say
  const models::Model* model = nullptr;
};

/// Takes the words that name network and weights from the front of `words`: WEIGHTS, where this file says what network
/// it is of; NETWORK WEIGHTS; NET.onnx, which has both; or with `weights` of --weights NETWORK or nothing. A word is a
/// file of weights by its ending, or as safetensors by its content. Throws ArgumentError, with the name of the command,
/// if one of the two is missing, and for a `permit` that is wrong or that there is no file of weights for.
[[nodiscard]] SavedNetwork take_saved_network(std::vector<std::string>& words, const std::string& weights,
                                              const PermitOption& permit, std::string_view command);

/// Gives the trainer's network its weights; those of an ONNX file it has from the start. Throws as Trainer::load.
void load_weights(Trainer& trainer, const SavedNetwork& saved, const PermitOption& permit);

/// The samples of a batch: `wanted`, or those that an ONNX file fixes where --batch was not given. Throws ArgumentError
/// if --batch says otherwise than the file.
[[nodiscard]] std::int64_t batch_for(const SavedNetwork& saved, std::int64_t wanted, const CLI::Option& option);

}  // namespace concord::cli
