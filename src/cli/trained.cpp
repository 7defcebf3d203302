// The metadata of weights.
#include "concord/cli/trained.hpp"

#include <fmt/format.h>

#include <charconv>

#include "concord/core/check.hpp"
#include "concord/core/text.hpp"
#include "concord/weights/file.hpp"

namespace concord::cli {
namespace {

constexpr const char* kNetwork = "concord.network";
constexpr const char* kClasses = "concord.classes";
constexpr const char* kTargets = "concord.targets";
constexpr const char* kAlphabet = "concord.alphabet";
constexpr const char* kVocab = "concord.vocab";
constexpr const char* kMerges = "concord.merges";
constexpr const char* kPreprocessing = "concord.preprocessing";
constexpr const char* kTable = "concord.table";
constexpr const char* kAudio = "concord.audio";

std::string in_hexadecimal(const std::string& bytes) {
  std::string digits;
  for (const char c : bytes) digits += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return digits;
}

std::string from_hexadecimal(const std::string& digits, const std::string& file) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
    unsigned byte = 0;
    const auto [end, error] = std::from_chars(digits.data() + i, digits.data() + i + 2, byte, 16);
    if (error != std::errc{} || end != digits.data() + i + 2) break;
    bytes += static_cast<char>(byte);
  }
  CONCORD_CHECK(!bytes.empty() && bytes.size() * 2 == digits.size(), FormatError,
                "{}: the metadata's '{}' is '{}', not bytes in hexadecimal", file, kAlphabet, digits);
  return bytes;
}

}  // namespace

Trained Trained::of(const std::string& file) {
  const std::map<std::string, std::string> metadata = weights::File(file).metadata();
  const auto value = [&](const char* name) {
    const auto found = metadata.find(name);
    return found == metadata.end() ? std::string() : found->second;
  };
  Trained trained;
  trained.is_of_file = true;
  trained.network = value(kNetwork);
  if (const std::string text = value(kClasses); !text.empty()) {
    const auto classes = number_in_text<int>(text);
    CONCORD_CHECK(classes && *classes > 0, FormatError, "{}: the metadata's '{}' is '{}', not a number of classes",
                  file, kClasses, text);
    trained.classes = *classes;
  }
  if (const std::string text = value(kTargets); !text.empty()) {
    CONCORD_CHECK(text == "yes", FormatError, "{}: the metadata's '{}' is '{}', not yes", file, kTargets, text);
    trained.has_targets = true;
  }
  if (const std::string text = value(kAlphabet); !text.empty()) trained.alphabet = from_hexadecimal(text, file);
  if (const std::string text = value(kVocab); !text.empty()) {
    trained.bpe = data::Bpe::parse(text, value(kMerges), fmt::format("{}: the metadata's '{}'", file, kVocab));
  }
  if (const std::string text = value(kPreprocessing); !text.empty()) {
    trained.preprocessing =
        data::Preprocessing::from_json(text, fmt::format("{}: the metadata's '{}'", file, kPreprocessing));
  }
  if (const std::string text = value(kTable); !text.empty()) {
    trained.table = data::csv_encoding_from_json(text, fmt::format("{}: the metadata's '{}'", file, kTable));
  }
  if (const std::string text = value(kAudio); !text.empty()) {
    trained.audio = data::AudioFeatures::from_json(text, fmt::format("{}: the metadata's '{}'", file, kAudio));
  }
  return trained;
}

std::map<std::string, std::string> Trained::metadata() const {
  std::map<std::string, std::string> metadata;
  if (!network.empty()) metadata.emplace(kNetwork, network);
  if (classes > 0) metadata.emplace(kClasses, fmt::format("{}", classes));
  if (has_targets) metadata.emplace(kTargets, "yes");
  if (!alphabet.empty()) metadata.emplace(kAlphabet, in_hexadecimal(alphabet));
  if (bpe) {
    metadata.emplace(kVocab, bpe->vocab());
    metadata.emplace(kMerges, bpe->merges());
  }
  if (preprocessing) metadata.emplace(kPreprocessing, preprocessing->to_json());
  if (table) metadata.emplace(kTable, data::to_json(*table));
  if (audio) metadata.emplace(kAudio, audio->to_json());
  return metadata;
}

}  // namespace concord::cli
