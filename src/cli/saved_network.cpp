// Words that name a network and its weights.
#include "concord/cli/saved_network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>

#include "concord/core/check.hpp"
#include "concord/core/log.hpp"
#include "concord/core/utf8.hpp"

namespace concord::cli {
namespace {

/// Whether a file of any name, such as a checkpoint, begins as safetensors do: the length of a header, and its brace.
bool has_safetensors_header(const std::string& file) {
  if (!std::filesystem::is_regular_file(file)) return false;
  std::array<char, 9> begin{};
  return std::ifstream(file, std::ios::binary).read(begin.data(), begin.size()) && begin[8] == '{' && begin[7] == 0;
}

bool is_weights(const std::string& word) {
  constexpr std::array kEndings{".safetensors", ".pt", ".pth", ".h5", ".keras", ".caffemodel"};
  return std::ranges::any_of(kEndings, [&](const char* ending) { return word.ends_with(ending); }) ||
         has_safetensors_header(word);
}

/// What stands behind a network is weights, whatever its name.
bool is_file_behind_network(const std::vector<std::string>& words) {
  return names_model(words[0]) && !words[0].ends_with(".onnx") && std::filesystem::is_regular_file(words[1]);
}

std::string take_first(std::vector<std::string>& words) {
  std::string first = std::move(words.front());
  words.erase(words.begin());
  return first;
}

}  // namespace

SavedNetwork take_saved_network(std::vector<std::string>& words, const std::string& weights, const PermitOption& permit,
                                std::string_view command) {
  static_cast<void>(permit.get());
  SavedNetwork saved;
  saved.weights = weights;
  std::string network;
  if (!weights.empty()) {
    const bool has_network = !Trained::of(weights).network.empty();
    if (!words.empty() && (!has_network || names_model(words[0]))) network = take_first(words);
  } else if (!words.empty() && is_weights(words[0])) {
    saved.weights = take_first(words);
  } else if (words.size() > 1 && (is_weights(words[1]) || is_file_behind_network(words))) {
    network = take_first(words);
    saved.weights = take_first(words);
  }
  if (saved.weights.empty() && !words.empty() && words[0].ends_with(".onnx")) {
    saved.weights = take_first(words);
    saved.has_own_weights = true;
    CONCORD_CHECK(permit.patterns.empty(), ArgumentError,
                  "--permit is for a file of weights; the weights are those of {} itself", printable(saved.weights));
    saved.model = &find_model(saved.weights);
    return saved;
  }
  CONCORD_CHECK(!saved.weights.empty(), ArgumentError,
                "{} needs weights: `concord {} net.safetensors ...`, `concord {} NETWORK net.safetensors ...`, "
                "`concord {} net.onnx ...`, or --weights FILE with a network",
                command, command, command, command);
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

void load_weights(Trainer& trainer, const SavedNetwork& saved, const PermitOption& permit) {
  if (!saved.has_own_weights) trainer.load(saved.weights, permit.get());
}

std::int64_t batch_for(const SavedNetwork& saved, std::int64_t wanted, const CLI::Option& option) {
  const std::int64_t fixed = fixed_batch(*saved.model);
  CONCORD_CHECK(fixed == 0 || option.count() == 0 || wanted == fixed, ArgumentError,
                "--batch {}: {} takes batches of {}; leave --batch out", wanted, printable(saved.model->name), fixed);
  return fixed == 0 ? wanted : fixed;
}

}  // namespace concord::cli
