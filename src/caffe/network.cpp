// The layers of a prototxt, traced in their order.
#include "concord/caffe/network.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "concord/caffe/layers.hpp"
#include "concord/core/check.hpp"
#include "concord/core/platform.hpp"
#include "concord/core/utf8.hpp"
#include "concord/nn/init.hpp"

namespace concord::caffe {
namespace {

/// Whether a rule holds where Caffe infers by default: phase TEST, level 0, and no stage.
bool holds_in_inference(const TextMessage* rule) {
  return rule->text("phase", "TEST") == "TEST" && rule->signed_whole("min_level", 0) <= 0 &&
         rule->signed_whole("max_level", 0) >= 0 && rule->texts("stage").empty();
}

/// Whether a layer belongs to inference: a rule of `include` holds or, without such rules, none of `exclude` does.
bool is_of_inference(const TextMessage& layer) {
  const auto included = layer.messages("include");
  if (!included.empty()) return std::ranges::any_of(included, holds_in_inference);
  return std::ranges::none_of(layer.messages("exclude"), holds_in_inference);
}

class CaffeNetwork : public nn::Module {
 public:
  explicit CaffeNetwork(const std::filesystem::path& path)
      : where_(path.string()), text_(TextMessage::parse(read_file(path), where_)) {
    CONCORD_CHECK(text_.messages("layers").empty(), NotSupported,
                  "{}: layers of the old form ('layers {{'); Caffe's upgrade_net_proto_text writes the new one",
                  where_);
    inputs_ = text_.texts("input");
    std::vector<std::string> unknown;
    for (const TextMessage* layer : text_.messages("layer")) {
      const std::string type = layer->text("type");
      if (!is_of_inference(*layer) || is_left_out(type)) continue;
      if (type == "Input") {
        for (const std::string& top : layer->texts("top")) inputs_.push_back(top);
      } else if (find_layer(type) == nullptr) {
        unknown.push_back(fmt::format("{} ({})", printable(layer->text("name")), printable(type)));
      } else {
        layers_.push_back(layer);
      }
    }
    CONCORD_CHECK(unknown.empty(), NotSupported, "{}: layers that are not read: {}", where_, fmt::join(unknown, ", "));
    CONCORD_CHECK(!inputs_.empty() && !layers_.empty(), FormatError, "{}, byte 0: the network has no {}", where_,
                  inputs_.empty() ? "input" : "layer");
    find_outputs();
  }

  Values forward_values(const Values& inputs) override {
    std::map<std::string, Value> blobs;
    for (const NamedValue& input : inputs) blobs[input.name] = input.value;
    for (const TextMessage* layer : layers_) {
      const std::string name = layer->text("name");
      LayerCall call{*layer, {}, {}};
      for (const std::string& bottom : layer->texts("bottom")) {
        const auto found = blobs.find(bottom);
        CONCORD_CHECK(found != blobs.end(), ArgumentError, "{}: the layer {} reads '{}', which is not there", where_,
                      printable(name), printable(bottom));
        call.bottoms.push_back(found->second);
      }
      CONCORD_CHECK(!call.bottoms.empty(), FormatError, "{}, byte 0: the layer {} reads nothing", where_,
                    printable(name));
      Graph& graph = call.bottoms[0].graph();
      call.parameter = [&](const std::string& part, const Shape& shape, bool trainable) {
        return parameter(graph, variable(name + "." + part, shape, trainable), name + "." + part);
      };
      const Value y = find_layer(layer->text("type"))(call);
      for (const std::string& top : layer->texts("top")) blobs[top] = y;
    }
    Values outputs;
    for (const std::string& name : outputs_) outputs.add(name, blobs.at(name));
    return outputs;
  }
  [[nodiscard]] std::vector<std::string> input_names() const override { return inputs_; }

 private:
  /// Blobs that no later layer reads. A layer may write the blob that it reads.
  void find_outputs() {
    std::vector<std::string> written;
    std::set<std::string> read;
    for (const TextMessage* layer : layers_) {
      for (const std::string& bottom : layer->texts("bottom")) read.insert(bottom);
      for (const std::string& top : layer->texts("top")) {
        read.erase(top);
        std::erase(written, top);
        written.push_back(top);
      }
    }
    std::ranges::copy_if(written, std::back_inserter(outputs_),
                         [&](const std::string& blob) { return !read.contains(blob); });
  }

  /// Made when its shape is known, with the first trace; the same for later traces.
  const VariablePtr& variable(const std::string& name, const Shape& shape, bool trainable) {
    VariablePtr& made = variables_[name];
    if (made == nullptr) {
      const float first = name.ends_with("running_var") ? 1.0F : 0.0F;
      made = make_parameter(shape, nn::init::constant(first), trainable);
    }
    CONCORD_CHECK(made->spec.shape == shape, ShapeError, "{}: {} was traced as {}, now it is {}", where_,
                  printable(name), made->spec.shape.str(), shape.str());
    return made;
  }

  const std::string where_;
  const TextMessage text_;
  std::vector<const TextMessage*> layers_;
  std::vector<std::string> inputs_, outputs_;
  std::map<std::string, VariablePtr> variables_;
};

}  // namespace

std::shared_ptr<nn::Module> load_network(const std::filesystem::path& prototxt) {
  return std::make_shared<CaffeNetwork>(prototxt);
}

}  // namespace concord::caffe
