// Checkpoints and weights on top of safetensors.
#include "concord/io/checkpoint.hpp"

#include <algorithm>
#include <cmath>
#include <concepts>
#include <string_view>
#include <utility>
#include <vector>

#include "concord/core/check.hpp"
#include "concord/core/json.hpp"
#include "concord/core/log.hpp"
#include "concord/core/name_pattern.hpp"
#include "concord/core/text.hpp"
#include "concord/core/version.hpp"
#include "concord/io/left_out.hpp"

namespace concord::io {
namespace {

using Json = nlohmann::json;

constexpr const char* kKey = "concord.checkpoint";
constexpr int kFormat = 1;
constexpr std::string_view kExpected = ": expected ";  // after the name of a misshaped tensor

std::string to_text(const CheckpointInfo& info) {
  return Json{{"format", kFormat},          {"network", info.network},   {"epoch", info.epoch},
              {"step", info.step},          {"position", info.position}, {"permutation_epoch", info.permutation_epoch},
              {"seed", info.seed},          {"schedule", info.schedule}, {"extra", info.extra},
              {"library_version", kVersion}}
      .dump(-1, ' ', false, Json::error_handler_t::replace);  // a name need not be UTF-8
}

/// The fields of a checkpoint's description; what is missing or of another type is named.
class Fields {
 public:
  Fields(const std::string& text, const std::string& file) : file_(file) {
    try {
      json_ = parse_json(text, kKey);
    } catch (const JsonError& error) {
      fail(error.byte() > 0 ? fmt::format("is not JSON from its byte {} on", error.byte() + 1) : error.problem());
    }
    if (!json_.is_object()) fail("is not a JSON object");
  }

  template <class T>
  void read(const char* field, T& value) const {
    const auto found = json_.find(field);
    if (found == json_.end()) fail(fmt::format("has no \"{}\"", field));
    if constexpr (std::integral<T>) {
      if (!is_in_range<T>(*found))
        fail(fmt::format("\"{}\" is {}, not an integer in the range of its type", field, found->dump()));
    }
    try {
      found->get_to(value);
    } catch (const Json::type_error&) {
      fail(fmt::format("\"{}\" is of another type", field));
    }
  }

 private:
  template <class T>
  static bool is_in_range(const Json& number) {
    if (number.is_number_unsigned()) return std::in_range<T>(number.get<std::uint64_t>());
    return number.is_number_integer() && std::in_range<T>(number.get<std::int64_t>());
  }

  [[noreturn]] void fail(std::string_view what) const {
    throw FormatError(fmt::format("{}: {}: {}; the checkpoint is damaged, use another", file_, kKey, what));
  }

  const std::string& file_;
  Json json_;
};

CheckpointInfo from_text(const std::string& text, const std::string& file) {
  const Fields fields(text, file);
  int format = 0;
  fields.read("format", format);
  CONCORD_CHECK(format == kFormat, FormatError, "{}: checkpoint format {}; this version of Concord reads {}", file,
                format, kFormat);
  CheckpointInfo info;
  fields.read("network", info.network);
  fields.read("epoch", info.epoch);
  fields.read("step", info.step);
  fields.read("position", info.position);
  fields.read("permutation_epoch", info.permutation_epoch);
  fields.read("seed", info.seed);
  fields.read("schedule", info.schedule);
  fields.read("extra", info.extra);
  fields.read("library_version", info.library_version);
  CONCORD_CHECK(info.epoch >= 0 && info.step >= 0 && info.position >= 0, FormatError,
                "{}: {}: epoch {}, step {}, position {}: one is negative", file, kKey, info.epoch, info.step,
                info.position);
  return info;
}

// "3 missing (a, b, c)"; long lists are cut.
std::string listed(const std::vector<std::string>& names, std::string_view kind) {
  constexpr std::size_t kShown = 5;
  std::string text = fmt::format("{} {} (", names.size(), kind);
  for (std::size_t i = 0; i < std::min(names.size(), kShown); ++i) text += (i > 0 ? ", " : "") + names[i];
  return text + (names.size() > kShown ? ", ...)" : ")");
}

// "f16 [2, 3]", as a TensorSpec says it.
std::string in_words(const TensorEntry& entry) { return fmt::format("{} {}", lower(entry.dtype), entry.shape.str()); }

}  // namespace

void check_finite(const std::filesystem::path& path, const TensorMap& tensors, const SaveOptions& options) {
  for (const auto& [name, tensor] : tensors) {
    if (tensor.dtype() != DType::f32) continue;
    const std::int64_t bad = std::ranges::count_if(tensor.values<float>(), [](float v) { return !std::isfinite(v); });
    if (bad == 0) continue;
    const std::string what =
        fmt::format("{}: '{}' has {} of {} elements that are not finite", path.string(), name, bad, tensor.elements());
    CONCORD_CHECK(options.allow_non_finite, NonFinite,
                  "{}; nothing is written. io::SaveOptions::allow_non_finite writes them.", what);
    log(LogLevel::warning, what + "; written, as requested");
  }
}

void save_checkpoint(const std::filesystem::path& path, const TensorMap& tensors, const CheckpointInfo& info,
                     const Metadata& more, const SaveOptions& options) {
  check_finite(path, tensors, options);
  Metadata metadata{{kKey, to_text(info)}};
  metadata.insert(options.metadata.begin(), options.metadata.end());
  metadata.insert(more.begin(), more.end());
  write_safetensors(path, tensors, metadata);
}

void save_checkpoint(const std::filesystem::path& path, const Variables& variables, const CheckpointInfo& info) {
  TensorMap tensors;
  for (const std::string& name : variables.persistent_names()) tensors.emplace(name, variables.read(name));
  save_checkpoint(path, tensors, info);
}

namespace {

CheckpointInfo info_of(const Safetensors& file, const std::filesystem::path& path) {
  const auto found = file.metadata.find(kKey);
  CONCORD_CHECK(found != file.metadata.end(), FormatError,
                "{}: not a checkpoint: the metadata has no \"{}\"; a weights file cannot be resumed", path.string(),
                kKey);
  return from_text(found->second, path.string());
}

}  // namespace

Checkpoint load_checkpoint(const std::filesystem::path& path) {
  Safetensors file = read_safetensors(path);
  return {info_of(file, path), std::move(file.tensors)};
}

CheckpointInfo load_checkpoint_info(const std::filesystem::path& path) {
  return info_of(read_safetensors(path, [](std::string_view) { return false; }), path);
}

LoadReport LoadReport::refused_by(const LoadOptions& options) const {
  if (!options.strict) return {};
  const auto refused = [](const std::vector<std::string>& names, const std::vector<std::string>& patterns) {
    std::vector<std::string> left;
    for (const std::string& name : names) {
      const std::string_view tensor = std::string_view(name).substr(0, name.find(kExpected));
      const auto is_match = [&](const std::string& pattern) { return match_name(pattern, tensor).has_value(); };
      if (std::ranges::none_of(patterns, is_match)) left.push_back(name);
    }
    return left;
  };
  return {refused(missing, options.permit_missing), refused(unexpected, options.permit_extra),
          refused(misshaped, options.permit_missing)};
}

std::string LoadReport::str() const {
  std::string text;
  const auto add = [&](const std::vector<std::string>& names, std::string_view kind) {
    if (!names.empty()) text += (text.empty() ? "" : ", ") + listed(names, kind);
  };
  add(missing, "missing");
  add(unexpected, "unexpected");
  add(misshaped, "of another shape");
  return text;
}

void check_tensors(const TensorMap& tensors, const std::map<std::string, TensorSpec>& expected,
                   const std::string& what) {
  LoadReport report;
  for (const auto& [name, spec] : expected) {
    const auto found = tensors.find(name);
    if (found == tensors.end()) {
      report.missing.push_back(name);
    } else if (found->second.spec() != spec) {
      report.misshaped.push_back(
          fmt::format("{}{}{}, got {}", name, kExpected, spec.str(), found->second.spec().str()));
    }
  }
  for (const auto& [name, tensor] : tensors) {
    if (!expected.contains(name)) report.unexpected.push_back(name);
  }
  CONCORD_CHECK(report.is_empty(), FormatError, "{}: {}", what, report.str());
}

void save_weights(const std::filesystem::path& path, const TensorMap& weights, const Metadata& more,
                  const SaveOptions& options) {
  check_finite(path, weights, options);
  Metadata metadata{{"format", "pt"}, {"producer", fmt::format("concord {}", kVersion)}};
  metadata.insert(options.metadata.begin(), options.metadata.end());
  metadata.insert(more.begin(), more.end());
  write_safetensors(path, weights, metadata);
}

void save_weights(const std::filesystem::path& path, const Variables& variables, std::span<const std::string> names) {
  TensorMap weights;
  for (const std::string& name : names) weights.emplace(name, variables.read(name));
  save_weights(path, weights);
}

TensorMap load_weights(const std::filesystem::path& path, const std::map<std::string, TensorSpec>& expected) {
  return load_weights(path, expected, {}).tensors;
}

LoadedWeights load_weights(const std::filesystem::path& path, const std::map<std::string, TensorSpec>& expected,
                           const LoadOptions& options) {
  SafetensorsFile file(path);
  LoadedWeights loaded;
  LoadReport& report = loaded.report;
  std::vector<std::string> fitting;
  for (const auto& [name, spec] : expected) {
    const auto found = file.tensors().find(name);
    if (found == file.tensors().end()) {
      report.missing.push_back(name);
    } else if (found->second.shape != spec.shape || !file.is_readable_as(name, spec.dtype)) {
      report.misshaped.push_back(fmt::format("{}{}{}, got {}", name, kExpected, spec.str(), in_words(found->second)));
    } else {
      fitting.push_back(name);
    }
  }
  const bool is_checkpoint = file.metadata().contains(kKey);
  const bool is_whole = fitting.size() == expected.size();
  for (const auto& [name, entry] : file.tensors()) {
    const bool is_left_out = is_checkpoint || is_batch_counter(name, expected) || (is_whole && is_auxiliary(name));
    if (!expected.contains(name) && !is_left_out) report.unexpected.push_back(name);
  }
  const LoadReport refused = report.refused_by(options);
  CONCORD_CHECK(refused.is_empty(), FormatError, "{}: weights of another network: {}", path.string(), refused.str());
  CONCORD_CHECK(!fitting.empty() || expected.empty(), FormatError,
                "{}: weights of another network: {}; no tensor matches", path.string(), report.str());
  for (const std::string& name : fitting) loaded.tensors.emplace(name, file.read_as(name, expected.at(name).dtype));
  return loaded;
}

}  // namespace concord::io
