// Networks of torchvision, timm and Hugging Face's transformers: their names and shapes fill ours, by the name map that
// is theirs, and their weights give their outputs. tests/goldens/names.py recorded them.
#include <algorithm>

#include "concord/weights/load.hpp"
#include "concord/weights/plan.hpp"
#include "files.hpp"
#include "goldens.hpp"
#include "weights/drawn.hpp"

using namespace concord;
using namespace concord::test;

namespace {

/// One of each form that takes a few seconds on every device.
const std::string kOrdinary[] = {"torchvision/resnet18",       "timm/resnet18",      "transformers/resnet18",
                                 "timm/mobilenetv3_large_100", "timm/convnext_tiny", "transformers/convnext"};

weights::Entries entries_of(const nlohmann::json& state) {
  weights::Entries entries;
  for (const auto& [name, entry] : state.items()) {
    std::vector<std::int64_t> dims;
    for (std::size_t i = 1; i < entry.size(); ++i) dims.push_back(entry[i].get<std::int64_t>());
    entries.emplace(name, io::TensorEntry{entry[0].get<std::string>(), Shape(dims)});
  }
  return entries;
}

/// Our network, traced on inputs of the recorded shape.
struct Ours {
  explicit Ours(const nlohmann::json& recorded) {
    const models::Model& model = models::find(recorded.at("ours").get<std::string>());
    Shape sample = model.input;
    if (recorded.contains("input")) sample = Shape(recorded.at("input").get<std::vector<std::int64_t>>());
    const auto network = models::make(model.name, {.input = sample});
    graph.set_training(false);
    x = graph.input("x", models::batch_of(model, sample, 2));
    y = (*network)(x);
  }
  Graph graph;
  Value x, y;
};

Tensor input_of(const TensorSpec& spec) {
  Tensor tensor(spec);
  if (spec.dtype == DType::i32) {
    const auto words = tensor.values<std::int32_t>();
    for (std::size_t i = 0; i < words.size(); ++i) words[i] = static_cast<std::int32_t>(7 * i);
  } else {
    draw_uniformly(tensor.values<float>(), "golden.input", -1, 1);
  }
  return tensor;
}

/// A file with the weights of theirs as names.py draws them. Tied tensors have the values of the one that they share.
void write_theirs(const std::filesystem::path& path, const nlohmann::json& state) {
  static const std::map<std::string, std::string> tied{
      {"lm_head.weight", "transformer.wte.weight"},
      {"cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight"},
      {"cls.predictions.decoder.bias", "cls.predictions.bias"}};
  io::TensorMap tensors;
  for (const auto& [name, entry] : entries_of(state)) {
    const auto like = tied.find(name);
    const std::string& drawn_as = like == tied.end() ? name : like->second;
    tensors.emplace(name, entry.dtype == "F32" ? drawn(drawn_as, entry.shape) : Tensor(DType::i32, entry.shape));
  }
  io::write_safetensors(path, tensors);
}

void check_outputs(const nlohmann::json& recorded) {
  const TemporaryFolder folder;
  write_theirs(folder / "theirs.safetensors", recorded.at("state"));
  Ours ours(recorded);
  const weights::Loaded loaded = weights::load(folder / "theirs.safetensors", weights::wanted_of(ours.graph));
  const auto expected = recorded.at("outputs").get<std::vector<float>>();
  // Hugging Face's ViT adds 1e-12 to variances, ours, as torchvision's and timm's, 1e-6.
  const double tolerance = loaded.report.map == "Hugging Face: ViT" ? 5e-4 : 1e-4;
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    const auto variables = std::make_shared<Variables>(device, 1);
    Program program = compile(ours.graph, {ours.y}, variables);
    for (const auto& [name, tensor] : loaded.tensors) variables->write(name, tensor);
    program.write("x", input_of(ours.x.spec()));
    program.run();
    const Tensor y = program.read(ours.y);
    const auto values = y.values<float>();
    const std::size_t step = std::max<std::size_t>(1, values.size() / expected.size());
    std::vector<float> thinned;
    for (std::size_t i = 0; i < values.size() && thinned.size() < expected.size(); i += step)
      thinned.push_back(values[i]);
    CHECK(difference(thinned, expected) < tolerance);
  }
}

}  // namespace

TEST_CASE("the name map of each library fills every tensor of the network exactly once", "[weights]") {
  const nlohmann::json recorded = golden("names.json");
  for (const auto& [key, network] : recorded.items()) {
    INFO(key);
    const Ours ours(network);
    const weights::Plan plan = weights::best_plan(entries_of(network.at("state")), weights::wanted_of(ours.graph), {});
    CHECK(plan.differences.str() == "");
    INFO(plan.map);
    const bool is_as_named = plan.renamed.empty() || plan.map == "names as they are";
    const bool is_theirs =
        key.starts_with("timm") ? plan.map.starts_with("timm") : plan.map.starts_with("Hugging Face");
    CHECK((is_as_named || is_theirs));
  }
}

TEST_CASE("weights of other libraries give the outputs of their networks", "[weights]") {
  const nlohmann::json recorded = golden("names.json");
  for (const std::string& key : kOrdinary) {
    DYNAMIC_SECTION(key) { check_outputs(recorded.at(key)); }
  }
}

TEST_CASE("weights of other libraries give the outputs of their larger networks", "[.slow]") {
  const nlohmann::json recorded = golden("names.json");
  for (const auto& [key, network] : recorded.items()) {
    if (!network.contains("outputs") || std::ranges::find(kOrdinary, key) != std::end(kOrdinary)) continue;
    DYNAMIC_SECTION(key) { check_outputs(network); }
  }
}
