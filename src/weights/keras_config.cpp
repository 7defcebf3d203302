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

Names variables_of(std::string_view kind, const Json& config) {
  const auto with_bias = [&](Names names) {
    if (is_on(config, "use_bias")) names.emplace_back("bias");
    return names;
  };
  if (kind == "Normalization") return {"mean", "variance", "count"};  // of the data, not of a batch norm
  if (kind.ends_with("Normalization")) {
    Names names;
    if (is_on(config, "scale")) names.emplace_back("gamma");
    if (is_on(config, "center")) names.emplace_back("beta");
    if (kind == "BatchNormalization") names.insert(names.end(), {"moving_mean", "moving_variance"});
    return names;
  }
  if (kind.starts_with("SeparableConv")) return with_bias({"depthwise_kernel", "pointwise_kernel"});
  if (kind.starts_with("DepthwiseConv")) return with_bias({"depthwise_kernel"});
  if (kind == "LSTM" || kind == "GRU" || kind == "SimpleRNN" || kind == "Bidirectional") {
    return with_bias({"kernel", "recurrent_kernel"});
  }
  if (kind == "Embedding") return {"embeddings"};
  if (kind == "PReLU") return {"alpha"};
  if (kind.starts_with("Conv") || kind == "Dense" || kind == "EinsumDense" || kind == "MultiHeadAttention") {
    return with_bias({"kernel"});
  }
  return {};
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
          const int number = used[place]++;
          if (number > 0) place += fmt::format("_{}", number);
          const std::string name = prefix + text_at(layer["config"], "name", where);
          layers_[path + place] = {name, variables_of(kind, layer["config"])};
          add(layer, path + place + "/layers/", name + ".", depth + 1);
        }
      };
  add(root, "layers/", "", 0);
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
