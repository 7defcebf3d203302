// The programs of docs/guide/weights.md.
#include "guide_test.hpp"

namespace concord {
namespace {

nn::Sequential make_classifier() { return nn::Sequential{nn::Linear{4, 16}, nn::ReLU{}, nn::Linear{16, 3}}; }

TEST_CASE("guide: weights of others", "[docs]") {
  const test::InEmptyFolder folder;
  const DevicePtr device = test::guide_device();
  const TensorSpec samples{DType::f32, {2, 4}};
  const Tensor first(DType::f32, {16, 4}), second(DType::f32, {3, 16});
  const io::TensorMap theirs{{"module.0.weight", first},
                             {"module.0.bias", Tensor(DType::f32, {16})},
                             {"module.2.weight", second},
                             {"module.2.bias", Tensor(DType::f32, {3})}};
  io::save_weights("theirs.safetensors", theirs);
  io::save_weights("backbone.safetensors",
                   {{"0.weight", first}, {"0.bias", Tensor(DType::f32, {16})}, {"head.bias", second}});
  {
    nn::Sequential network = make_classifier();
    // [load]
    Trainer trainer{network, loss::cross_entropy, optim::Sgd{}, device};
    trainer.load("theirs.safetensors");  // strict
    trainer.load("backbone.safetensors", {.permit_missing = {"2.*"}, .permit_extra = {"head.*"}});
    // [end]
    trainer.prepare({DType::f32, {4}});
  }
  nn::Sequential network = make_classifier();
  // [report]
  Graph graph;
  const Value y = network(graph.input("x", samples));
  const weights::Loaded loaded = weights::load("theirs.safetensors", weights::wanted_of(graph));
  for (const std::string& line : loaded.report.renamed) std::puts(line.c_str());  // "module.0.bias → 0.bias"
  // [end]
  CHECK(loaded.report.renamed.size() == 4);
  CHECK(y.shape() == Shape{2, 3});
}

}  // namespace
}  // namespace concord
