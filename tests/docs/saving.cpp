// The programs of docs/guide/saving-resuming-deploying.md.
#include <thread>

#include "guide_test.hpp"

namespace concord {
namespace {

// [network]
nn::Sequential make_network() { return nn::Sequential{nn::Linear{4, 16}, nn::ReLU{}, nn::Linear{16, 3}}; }
// [end]

std::vector<float> floats(const Tensor& tensor) {
  const auto values = tensor.values<float>();
  return {values.begin(), values.end()};
}

TEST_CASE("guide: weights, checkpoints and a program that only predicts", "[docs]") {
  const test::InEmptyFolder folder;
  const DevicePtr device = test::guide_device();
  const Dataset data = data::synthetic(Shape{4}, 3, 300);
  const Tensor samples = data::slice(data, 0, 1).features;
  {
    // [save]
    Trainer trainer{make_network(), loss::cross_entropy, optim::Adam{}, device};
    trainer.fit(data, {.epochs = 2, .checkpoint = "run.ckpt"});  // the checkpoint is written after each epoch
    trainer.save("net.safetensors");                             // only the weights
    // [end]
  }
  std::vector<float> expected;
  {
    // [load]
    Trainer trainer{make_network(), loss::cross_entropy, optim::Adam{}, device};
    trainer.load("net.safetensors");
    const Tensor logits = trainer.predict(samples);  // (N, 3)
    // [end]
    expected = floats(logits);
  }
  {
    // [resume]
    Trainer trainer{make_network(), loss::cross_entropy, optim::Adam{}, device};
    trainer.resume("run.ckpt");
    trainer.fit(data, {.epochs = 5, .checkpoint = "run.ckpt"});  // epochs 3, 4 and 5
    // [end]
    CHECK(trainer.epochs_done() == 5);
  }
  {
    // [head]
    nn::Sequential other{nn::Linear{4, 16}, nn::ReLU{}, nn::Linear{16, 7}};  // 7 classes instead of 3
    Trainer trainer{other, loss::cross_entropy, optim::Adam{}, device};
    trainer.load("net.safetensors", {.strict = false});  // "2.weight" and "2.bias" keep their initial values
    // [end]
    trainer.prepare({DType::f32, Shape{4}});
    CHECK(trainer.variables()->read("2.bias").shape() == Shape{7});
  }
  {
    // [deploy]
    Session session{make_network(), device};
    session.load("net.safetensors");
    const Tensor answer = session.run(samples);  // for each request; (N, 4) → (N, 3) for any N
    // [end]
    // [threads]
    Session other = session.share();  // the same weights, for another thread
    std::thread worker([&] { static_cast<void>(other.run(samples)); });
    // [end]
    worker.join();
    const std::vector<float> got = floats(answer);
    REQUIRE(got.size() == expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == Approx(expected[i]).margin(1e-5));
  }
}

TEST_CASE("guide: averaged weights and early stopping", "[docs]") {
  const DevicePtr device = test::guide_device();
  const auto [train, held_out] = data::split(data::synthetic(Shape{4}, 3, 300), 60);
  // [best]
  Trainer trainer{make_network(), loss::cross_entropy, optim::Adam{}, device, {.ema_decay = 0.99}};
  const History history =
      trainer.fit(train, {.epochs = 20, .validate = held_out, .early_stopping = EarlyStopping{.patience = 3}});
  // [end]
  CHECK(history.best_epoch > 0);
}

}  // namespace
}  // namespace concord
