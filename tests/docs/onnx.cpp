// The programs of docs/guide/onnx.md.
#include "guide_test.hpp"
#include "onnx/model_builder.hpp"

namespace concord {
namespace {

using onnx::ElementType;

// Features of four numbers, as another library might export them.
void write_features(const std::filesystem::path& path) {
  using namespace test;
  onnx::Model model = empty_model();
  std::vector<float> weights;
  for (int i = 0; i < 64; ++i) weights.push_back(static_cast<float>((i * 37) % 64) / 64 - 0.5F);
  model.graph.initializers = {float_proto("features.weight", {16, 4}, weights)};
  model.graph.nodes = {node("Gemm", {"x", "features.weight"}, {"sums"}, {attribute("transB", std::int64_t{1})}),
                       node("Relu", {"sums"}, {"features"})};
  model.graph.inputs = {declared("x", ElementType::f32, {-1, 4})};
  model.graph.outputs = {declared("features", ElementType::f32, {-1, 16})};
  onnx::write_model(path, model);
}

// [tuned]
// A network of a file with a new head.
class Tuned : public nn::Module {
 public:
  Tuned(onnx::Network base, std::int64_t features, std::int64_t classes)
      : base_(std::move(base)), head_(features, classes) {
    base_.freeze();
  }
  Children children() override { return {{"base", &base_}, {"head", &head_}}; }
  Value forward(Value x) override { return head_(base_(x)); }

 private:
  onnx::Network base_;
  nn::Linear head_;
};
// [end]

TEST_CASE("guide: ONNX files are run and fine-tuned", "[docs]") {
  const test::InEmptyFolder folder;
  const DevicePtr device = test::guide_device();
  write_features("net.onnx");
  const Dataset data = data::synthetic(Shape{4}, 3, 300);
  const Tensor samples = data::slice(data, 0, 8).features;
  {
    // [run]
    Session session{onnx::load("net.onnx"), device};
    const NamedTensors outputs = session.run({{"x", samples}});
    const Tensor& features = outputs.at("features");
    // [end]
    CHECK(features.shape() == Shape{8, 16});
  }
  {
    // [tune]
    Tuned network{onnx::load("net.onnx"), 16, 3};
    Trainer trainer{network, loss::cross_entropy, optim::Adam{}, device};
    trainer.fit(data, {.epochs = 2});
    trainer.save("tuned.safetensors");  // "base.features.weight", "head.weight", "head.bias"
    // [end]
    const auto names = trainer.variables()->names();
    for (const char* const name : {"base.features.weight", "head.weight", "head.bias"}) {
      CHECK(std::ranges::find(names, name) != names.end());
    }
    const Tensor kept = trainer.variables()->read("base.features.weight");
    CHECK(kept.values<float>()[1] == 37.0F / 64 - 0.5F);  // frozen
  }
}

}  // namespace
}  // namespace concord
