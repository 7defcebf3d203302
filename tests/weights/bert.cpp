// BERT with sentences, padding and a pooler, against transformers' BertModel (tests/goldens/bert.py), on every device.
#include "concord/models/bert.hpp"

#include "concord/weights/load.hpp"
#include "files.hpp"
#include "goldens.hpp"
#include "weights/drawn.hpp"

using namespace concord;
using namespace concord::test;

namespace {

constexpr models::BertOptions kSmallBert{.vocabulary = 50,
                                         .context = 16,
                                         .depth = 2,
                                         .width = 24,
                                         .heads = 3,
                                         .inner = 40,
                                         .masked_words = false,
                                         .pooler = true};

Tensor whole_numbers(const nlohmann::json& rows) {
  std::vector<std::int32_t> numbers;
  for (const auto& row : rows) {
    for (const auto& number : row) numbers.push_back(number.get<std::int32_t>());
  }
  const auto n = static_cast<std::int64_t>(rows.size());
  return Tensor::of<std::int32_t>({n, static_cast<std::int64_t>(numbers.size()) / n}, numbers);
}

void check_bert(const nlohmann::json& recorded, const std::string& kind, const std::filesystem::path& weights_file) {
  INFO(kind);
  const auto network = models::bert(kSmallBert);
  const std::map<std::string, Tensor> columns{{"input_ids", whole_numbers(recorded.at("words"))},
                                              {"token_type_ids", whole_numbers(recorded.at("types"))},
                                              {"attention_mask", whole_numbers(recorded.at("mask"))}};
  Graph graph;
  graph.set_training(false);
  Values inputs;
  for (const auto& [name, tensor] : columns) {
    if (kind == "all" || name == "input_ids") inputs.add(name, graph.input(name, tensor.spec()));
  }
  const Values outputs = (*network)(inputs);
  const Value words = slice(outputs["last_hidden_state"], 1, 0, 5);  // those that no padding hides
  const weights::Loaded loaded = weights::load(weights_file, weights::wanted_of(graph));
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    const auto variables = std::make_shared<Variables>(device, 1);
    Program program = compile(graph, {words, outputs["pooler_output"]}, variables);
    for (const auto& [name, tensor] : loaded.tensors) variables->write(name, tensor);
    for (const NamedValue& input : inputs) program.write(input.name, columns.at(input.name));
    program.run();
    const nlohmann::json& expected = recorded.at("outputs").at(kind);
    CHECK(difference(program.read(words), expected.at("last_hidden_state")) < 1e-4);
    CHECK(difference(program.read(outputs["pooler_output"]), expected.at("pooler_output")) < 1e-4);
  }
}

}  // namespace

TEST_CASE("a BERT with sentences, padding and a pooler gives transformers' outputs", "[weights]") {
  const TemporaryFolder folder;
  const nlohmann::json recorded = golden("bert.json");
  io::TensorMap tensors;
  for (const auto& [name, dims] : recorded.at("state").items()) {
    tensors.emplace(name, drawn(name, Shape(dims.get<std::vector<std::int64_t>>())));
  }
  tensors.emplace("embeddings.position_ids", Tensor(DType::i32, {1, 16}));  // as older files have it
  io::write_safetensors(folder / "bert.safetensors", tensors);
  check_bert(recorded, "plain", folder / "bert.safetensors");
  check_bert(recorded, "all", folder / "bert.safetensors");
}

TEST_CASE("a BERT says which of its inputs are wrong", "[weights]") {
  const auto network = models::bert(kSmallBert);
  Graph graph;
  const Value words = graph.input("words", {DType::i32, {2, 8}});
  const Value mask = graph.input("mask", {DType::f32, {2, 7}});
  CHECK_THAT(message_of<ShapeError>([&] {
               (void)(*network)({NamedValue{"input_ids", words}, NamedValue{"attention_mask", mask}});
             }),
             contains("attention_mask is [2, 7], but the words are [2, 8]"));
  CHECK_THROWS_AS(models::bert({.width = 10, .heads = 3}), ArgumentError);
  CHECK_THROWS_AS(models::bert({.depth = 0}), ArgumentError);
}
