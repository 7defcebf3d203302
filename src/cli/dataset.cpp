// --data: names to readers.
#include "concord/cli/dataset.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iostream>
#include <limits>

#include "concord/cli/command.hpp"
#include "concord/cli/model_file.hpp"
#include "concord/cli/random_data.hpp"
#include "concord/cli/validator.hpp"
#include "concord/core/platform.hpp"
#include "concord/core/text.hpp"
#include "concord/io/safetensors.hpp"
#include "concord/weights/file.hpp"

namespace concord::cli {
namespace {

constexpr const char* kAlphabet = "concord.alphabet";
constexpr const char* kValidation = "concord.validation";
constexpr std::string_view kText = "text:";

Dataset read(const std::string& name, std::string_view split, const std::string& directory) {
  if (name == "fashion-mnist") return data::fashion_mnist(split, directory);
  if (name == "mnist") return data::mnist(split, directory);
  if (name == "cifar10") return data::cifar10(split, directory);
  if (name == "cifar100") return data::cifar100(split, directory);
  if (name.rfind("emnist-", 0) == 0) return data::emnist(name.substr(7), split, directory);
  throw ArgumentError(fmt::format("unknown data set '{}'; known: {}", name, kDataHelp));
}

}  // namespace

std::string alphabet_of(const std::string& name) {
  if (!name.starts_with(kText)) return {};
  return data::alphabet_of(read_file(name.substr(kText.size())));
}

std::map<std::string, std::string> alphabet_metadata(const std::string& alphabet) {
  if (alphabet.empty()) return {};
  std::string digits;
  for (const char c : alphabet) digits += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return {{kAlphabet, digits}};
}

std::string saved_alphabet(const std::string& file) {
  const auto metadata = weights::File(file).metadata();
  const auto found = metadata.find(kAlphabet);
  if (found == metadata.end()) return {};
  const std::string& digits = found->second;
  std::string alphabet;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
    unsigned byte = 0;
    const auto [end, error] = std::from_chars(digits.data() + i, digits.data() + i + 2, byte, 16);
    if (error != std::errc{} || end != digits.data() + i + 2) break;
    alphabet += static_cast<char>(byte);
  }
  if (alphabet.empty() || alphabet.size() * 2 != digits.size()) {
    throw FormatError(
        fmt::format("{}: the metadata's '{}' is '{}', not bytes in hexadecimal", file, kAlphabet, digits));
  }
  return alphabet;
}

Dataset open_dataset(const std::string& name, std::string_view split, const models::Model& model, std::uint64_t seed,
                     const std::string& alphabet) {
  const timeline::Span span("read data set");
  constexpr std::int64_t kRandomTrain = 4096, kRandomTest = 1024, kMostValues = std::int64_t{1} << 26;
  if (name == "random") {
    // Both splits are parts of one set, so that what is learned from the first holds for the second.
    const Shape sample = published_sample(model);
    const std::int64_t most = std::max<std::int64_t>(64, kMostValues / sample.elements());
    const std::int64_t train = std::min(kRandomTrain, most), test = std::min(kRandomTest, most);
    const Dataset all = random_data(model, sample, train + test, seed);
    return split == "train" ? data::slice(all, 0, train) : data::slice(all, train, test);
  }
  const std::size_t colon = name.find(':');
  const std::string kind = name.substr(0, colon), place = colon == std::string::npos ? "" : name.substr(colon + 1);
  if ((kind == "text") != (model.task == models::Task::language)) {
    throw ArgumentError(
        fmt::format("{} is a model for {}; it cannot be trained on {}", model.name, models::name_of(model.task), name));
  }
  if (kind == "text") {
    data::Characters text = data::characters(place, {.length = model.input[0], .alphabet = alphabet});
    return split == "train" ? text.train : text.validation;
  }
  Dataset dataset = read(kind, split, place);
  if (model.task != models::Task::classification) {
    throw ArgumentError(
        fmt::format("{} is a model for {}; {} has classes of images", model.name, models::name_of(model.task), name));
  }
  // A file may leave sizes open: its layers say what does not fit.
  if (file_of(model) == nullptr && dataset.feature_spec().shape != model.input) {
    throw ArgumentError(fmt::format("{} has samples of shape {}, but the model needs {}", name,
                                    dataset.feature_spec().shape.str(), model.input.str()));
  }
  if (dataset.classes > model.classes) {
    throw ArgumentError(fmt::format("{} has {} classes, but the model has {}", name, dataset.classes, model.classes));
  }
  return dataset;
}

void ValidationOptions::add(CLI::App& command) {
  source_option =
      command
          .add_option(
              "--validate", source,
              "Validate on a held-out part of the training set (split), on the test split (test), or not at all (none)")
          ->capture_default_str()
          ->check(CLI::IsMember({"split", "test", "none"}));
  part_option = command.add_option("--validation-split", part, "The part of the training set for validation")
                    ->capture_default_str()
                    ->check(between_0_and_1());
  seed_option = command.add_option("--validation-seed", seed, "Selects the samples for validation")
                    ->capture_default_str()
                    ->check(whole(0, std::numeric_limits<std::uint64_t>::max()));
}

void ValidationOptions::follow(const std::string& checkpoint) {
  const auto metadata = io::read_safetensors(checkpoint, [](std::string_view) { return false; }).metadata;
  const auto found = metadata.find(kValidation);
  // As checkpoints that do not say.
  const std::vector<std::string> words = split(found == metadata.end() ? "test" : found->second, ' ');
  ValidationOptions saved;
  if (!words.empty()) saved.source = words[0];
  if (words.size() > 1) saved.part = number_in_text<decltype(saved.part)>(words[1]).value_or(saved.part);
  if (words.size() > 2) saved.seed = number_in_text<decltype(saved.seed)>(words[2]).value_or(saved.seed);
  const auto take = [&](auto& own, const auto& other, const CLI::Option* option, const char* what) {
    if (option->count() == 0) {
      own = other;
    } else if (own != other) {
      std::cerr << fmt::format("{}: the training had {} {}; this one has {}\n", checkpoint, what, other, own);
    }
  };
  take(source, saved.source, source_option, "--validate");
  take(part, saved.part, part_option, "--validation-split");
  take(seed, saved.seed, seed_option, "--validation-seed");
}

std::pair<Dataset, std::optional<Dataset>> ValidationOptions::divide(Dataset train) const {
  if (!is_split()) return {std::move(train), std::nullopt};
  if (train.size() < 2) {
    throw ArgumentError(
        fmt::format("{}: a part of {} samples cannot be held out for validation: use --validate test or none",
                    train.name, train.size()));
  }
  const auto wanted = static_cast<std::int64_t>(std::llround(part * static_cast<double>(train.size())));
  auto [rest, held_out] = data::split(train, std::clamp<std::int64_t>(wanted, 1, train.size() - 1), seed);
  return {std::move(rest), std::move(held_out)};
}

std::map<std::string, std::string> ValidationOptions::metadata() const {
  return {{kValidation, fmt::format("{} {} {}", source, part, seed)}};
}

models::Variant variant_for(const models::Model& model, const Dataset& data) {
  const bool language = model.task == models::Task::language;
  return {.classes = language ? data.classes : 0, .input = data.feature_spec().shape};
}

std::shared_ptr<nn::Module> network_for(const models::Model& model, const Dataset& data) {
  return make_network(model, variant_for(model, data));
}

}  // namespace concord::cli
