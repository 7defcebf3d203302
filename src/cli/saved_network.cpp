// Words that name a network and its weights.
#include "concord/cli/saved_network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "concord/core/check.hpp"
#include "concord/core/log.hpp"
#include "concord/core/utf8.hpp"

namespace concord::cli {
namespace {

bool is_weights(std::string_view word) {
  constexpr std::array kEndings{".safetensors", ".pt", ".pth", ".h5", ".keras", ".caffemodel"};
  return std::ranges::any_of(kEndings, [&](const char* ending) { return word.ends_with(ending); });
}

std::string take_first(std::vector<std::string>& words) {
  std::string first = std::move(words.front());
  words.erase(words.begin());
  return first;
}

}  // namespace

SavedNetwork take_saved_network(std::vector<std::string>& words, const std::string& weights, std::string_view command) {
  SavedNetwork saved;
  saved.weights = weights;
  std::string network;
  if (!weights.empty()) {
    const bool has_network = !Trained::of(weights).network.empty();
    if (!words.empty() && (!has_network || names_model(words[0]))) network = take_first(words);
  } else if (!words.empty() && is_weights(words[0])) {
    saved.weights = take_first(words);
  } else if (words.size() > 1 && is_weights(words[1])) {
    network = take_first(words);
    saved.weights = take_first(words);
  }
  CONCORD_CHECK(!saved.weights.empty() || words.empty() || !words[0].ends_with(".onnx"), ArgumentError,
                "{} does not use the weights in an ONNX file: name a file of weights behind it, `concord {} {} "
                "net.safetensors ...`; `concord run` computes its outputs with its own",
                command, command, printable(words[0]));
  CONCORD_CHECK(!saved.weights.empty(), ArgumentError,
                "{} needs weights: `concord {} net.safetensors ...`, `concord {} NETWORK net.safetensors ...`, or "
                "--weights FILE with a network",
                command, command, command);
  saved.trained = Trained::of(saved.weights);
  CONCORD_CHECK(!network.empty() || !saved.trained.network.empty(), ArgumentError,
                "{} does not say what network it is of: use `concord {} NETWORK --weights {}`", saved.weights, command,
                saved.weights);
  saved.model = &find_model(network.empty() ? saved.trained.network : network);
  const std::string& trained = saved.trained.network;
  if (!network.empty() && !trained.empty() && saved.model->name != trained && file_of(*saved.model) == nullptr) {
    log(LogLevel::warning, fmt::format("{} was trained as {}, and is read as {}; without {} it is read as the former",
                                       saved.weights, trained, network, network));
  }
  return saved;
}

}  // namespace concord::cli
