// Layers are stored by the names of their classes, numbered in the order of the model; variables are numbered in the
// order in which a layer makes them.
#include "concord/weights/keras_config.hpp"

#include <algorithm>
#include <functional>

#include "concord/core/check.hpp"
#include "concord/core/json.hpp"
#include "concord/core/text.hpp"

namespace concord::weights {
namespace {

using Json = nlohmann::json;
using Names = std::vector<std::string>;

constexpr int kDeepestModel = 16;
constexpr std::string_view kLayers = "layers/";
constexpr JsonLimits kConfigLimits{.depth = 64};

/// As Keras: Conv2DTranspose → conv2d_transpose, LSTM → lstm.
std::string snake_case(std::string_view name) {
  std::string result;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const bool is_upper = name[i] >= 'A' && name[i] <= 'Z';
    const bool after_small = i > 0 && ((name[i - 1] >= 'a' && name[i - 1] <= 'z') || is_digit(name[i - 1]));
    const bool before_small = i > 0 && i + 1 < name.size() && name[i + 1] >= 'a' && name[i + 1] <= 'z';
    const bool is_after_digit = i > 0 && is_digit(name[i - 1]) && !before_small;
    if (is_upper && i > 0 && ((after_small && !is_after_digit) || before_small)) result += '_';
    result += lower(name[i]);
  }
  return result;
}

bool is_on(const Json& config, const char* option) {
  const auto found = config.find(option);
  return found == config.end() || !found->is_boolean() || found->get<bool>();
}

/// Which variables a layer has.
struct Parts {
  bool bias = true, scale = true, center = true;
};

Names variables_of(std::string_view kind, const Parts& parts) {
  const auto with_bias = [&](Names names) {
    if (parts.bias) names.emplace_back("bias");
    return names;
  };
  if (kind == "normalization") return {"mean", "variance", "count"};  // of the data, not of a batch norm
  if (kind.ends_with("normalization")) {
    Names names;
    if (parts.scale) names.emplace_back("gamma");
    if (parts.center) names.emplace_back("beta");
    if (kind == "batch_normalization") names.insert(names.end(), {"moving_mean", "moving_variance"});
    return names;
  }
  if (kind.starts_with("separable_conv")) return with_bias({"depthwise_kernel", "pointwise_kernel"});
  if (kind.starts_with("depthwise_conv")) return with_bias({"depthwise_kernel"});
  if (kind == "lstm" || kind == "gru" || kind == "simple_rnn" || kind == "bidirectional") {
    return with_bias({"kernel", "recurrent_kernel"});
  }
  if (kind == "embedding") return {"embeddings"};
  if (kind == "p_re_lu") return {"alpha"};
  if (kind.starts_with("conv") || kind == "dense" || kind == "einsum_dense" || kind == "multi_head_attention") {
    return with_bias({"kernel"});
  }
  return {};
}

/// Of a layer that has `count` variables.
Names variables_of(std::string_view kind, std::size_t count) {
  const std::size_t statistics = kind == "batch_normalization" ? 2 : 0;
  if (!kind.ends_with("normalization") || kind == "normalization") return variables_of(kind, Parts{});
  if (count == statistics) return variables_of(kind, Parts{.scale = false, .center = false});
  return count == statistics + 2 ? variables_of(kind, Parts{}) : Names{};
}

/// "conv2d_1" → "conv2d"
std::string_view kind_of(std::string_view place) {
  std::size_t end = place.size();
  while (end > 0 && is_digit(place[end - 1])) --end;
  return end < place.size() && end > 1 && place[end - 1] == '_' ? place.substr(0, end - 1) : place;
}

const std::string& text_at(const Json& object, const char* field, const std::string& where) {
  const bool is_text = object.is_object() && object.contains(field) && object[field].is_string();
  CONCORD_CHECK(is_text, FormatError, "{}, byte 0: a layer has no text \"{}\"", where, field);
  return object[field].get_ref<const std::string&>();
}

}  // namespace

KerasNames::KerasNames(std::string_view config, const std::string& where) {
  const Json root = parse_json(config, where, kConfigLimits);
  const std::function<void(const Json&, const std::string&, const std::string&, int)> add =
      [&](const Json& model, const std::string& path, const std::string& prefix, int depth) {
        CONCORD_CHECK(depth <= kDeepestModel, FormatError, "{}, byte 0: models within each other are too deep", where);
        const bool has_layers = model.is_object() && model.contains("config") && model["config"].is_object() &&
                                model["config"].contains("layers") && model["config"]["layers"].is_array();
        if (!has_layers) return;
        std::map<std::string, int> used;
        for (const Json& layer : model["config"]["layers"]) {
          const std::string& kind = text_at(layer, "class_name", where);
          CONCORD_CHECK(layer.contains("config"), FormatError, "{}, byte 0: a layer has no \"config\"", where);
          std::string place = snake_case(kind);
          const Json& options = layer["config"];
          const Parts parts{is_on(options, "use_bias"), is_on(options, "scale"), is_on(options, "center")};
          const Names variables = variables_of(place, parts);
          const int number = used[place]++;
          if (number > 0) place += fmt::format("_{}", number);
          const std::string name = prefix + text_at(options, "name", where);
          layers_[path + place] = {name, variables};
          add(layer, path + place + "/layers/", name + ".", depth + 1);
        }
      };
  add(root, "layers/", "", 0);
}

KerasNames::KerasNames(const std::vector<std::string>& paths, const std::map<std::string, std::string>& group_names) {
  std::map<std::string_view, std::size_t> counts;  // of variables, by their group
  for (const std::string_view path : paths) ++counts[path.substr(0, path.rfind('/'))];
  for (const std::string& path : paths) {
    std::string prefix;
    std::size_t begin = 0;  // of "layers/conv2d_1/…", perhaps in a model of models
    while (std::string_view(path).substr(begin).starts_with(kLayers)) {
      const std::size_t place_at = begin + kLayers.size(), end = path.find('/', place_at);
      if (end == std::string::npos) break;
      const std::string layer = path.substr(0, end), place = path.substr(place_at, end - place_at);
      const std::string variables = layer + "/vars";
      const auto named = group_names.find(variables);
      const std::string name = prefix + (named == group_names.end() ? place : named->second);
      layers_.try_emplace(layer, Layer{name, variables_of(kind_of(place), counts[variables])});
      prefix = name + ".";
      begin = end + 1;
    }
  }
}

std::string KerasNames::name_of(std::string_view path) const {
  std::string result;
  std::string_view rest = path;
  const Layer* layer = nullptr;
  for (std::size_t end = path.find('/'); end != std::string_view::npos; end = path.find('/', end + 1)) {
    const auto found = layers_.find(path.substr(0, end));
    if (found == layers_.end()) continue;
    layer = &found->second;  // the deepest
    result = layer->name;
    rest = path.substr(end + 1);
  }
  const Names parts = split(rest, '/');
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const bool is_variable = i > 0 && i + 1 == parts.size() && parts[i - 1] == "vars";
    const auto number = is_variable ? number_in_text<std::size_t>(parts[i]) : std::nullopt;
    if (layer != nullptr && number && *number < layer->variables.size()) {
      result += "." + layer->variables[*number];
    } else if (layer == nullptr || (parts[i] != "vars" && parts[i] != "cell")) {
      result += (result.empty() ? "" : ".") + parts[i];
    }
  }
  return result;
}

}  // namespace concord::weights
