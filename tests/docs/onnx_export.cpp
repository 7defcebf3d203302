// The programs of docs/guide/onnx-export.md.
#include "files.hpp"
#include "guide_test.hpp"

using namespace concord;
using namespace concord::test;

TEST_CASE("guide: exporting to ONNX", "[docs]") {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder / "net.onnx", step = folder / "step.onnx";
  // [save]
  nn::Sequential net;
  net.push(nn::Linear{8, 32}).push(nn::ReLU{}).push(nn::Linear{32, 3});
  onnx::save(file, net, {.input = {1, 8}, .batch = "N", .outputs = {"logits"}});
  // [end]
  Session session{onnx::load(file), guide_device()};
  CHECK(session.run({{"input", Tensor(DType::f32, {5, 8})}}).at("logits").shape() == Shape{5, 3});

  // [save_training]
  onnx::save_training(step, net, loss::cross_entropy, optim::Adam{.lr = 1e-3},
                      {.input = {16, 8}, .target = {DType::i32, {16}}});
  // [end]
  CHECK(std::filesystem::exists(step));
}
