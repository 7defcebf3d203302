// Families of published networks, which are sizes of one: each has as many parameters as published.
#include "concord/models/bert.hpp"
#include "concord_test.hpp"

using namespace concord;

namespace {

std::int64_t trainable_of(nn::Module& network, const TensorSpec& samples) {
  Graph graph;
  Values inputs;
  inputs.add("", graph.input("x", samples));
  static_cast<void>(network(inputs));
  std::int64_t count = 0;
  for (const VariablePtr& variable : graph.variables()) {
    if (variable->trainable) count += variable->spec.shape.elements();
  }
  return count;
}

}  // namespace

TEST_CASE("the sizes of a family have the published parameters", "[models]") {
  CHECK(models::find("gpt2_small:depth=24,width=1024,heads=16").parameters == 354'823'168);  // medium
  CHECK(models::find("gpt2_small:depth=36,width=1280,heads=20").parameters == 774'030'080);  // large
  CHECK(models::find("gpt2_small:depth=48,width=1600,heads=25").parameters == 1'557'611'200);
  CHECK(models::find("bert_base:depth=24,width=1024,heads=16").parameters == 335'174'458);
  CHECK(models::find("vit_b_16:patch=32").parameters == 88'224'232);
  CHECK(models::find("vit_b_16:depth=24,width=1024,heads=16").parameters == 304'326'632);
  CHECK(models::find("vit_b_16:width=384,heads=6").parameters == 22'050'664);  // DeiT-S
  CHECK_THROWS_AS(models::find("vit_b_16:heads=5"), ArgumentError);
  CHECK_THROWS_AS(models::find("bert_base:heads=5"), ArgumentError);
}

TEST_CASE("the encoder of a BERT has the parameters of transformers' BertModel", "[models]") {
  const auto encoder = models::bert({.masked_words = false, .pooler = true});
  CHECK(trainable_of(*encoder, {DType::i32, {1, 8}}) == 109'482'240);
}
