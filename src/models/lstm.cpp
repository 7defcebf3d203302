// A sequence of vectors to one class by layers of LSTM (Hochreiter and Schmidhuber, "Long Short-Term Memory", 1997):
// f32 (N, T, 512) → logits (N, classes) from the last step. A plain network to measure recurrence with.
#include "concord/models/blocks.hpp"
#include "concord/models/networks.hpp"
#include "concord/nn/recurrent.hpp"
#include "concord/ops/copy.hpp"

namespace concord::models {
namespace {

constexpr std::int64_t kFeatures = 512;

struct Lstm : nn::Module {
  nn::LSTM rnn;
  nn::Linear fc;
  Lstm(int depth, int width, int classes)
      : rnn(kFeatures, width, {.num_layers = depth, .batch_first = true}), fc(width, classes) {}
  Value forward(Value x) override {
    const Value steps = rnn(x);  // (N, T, width)
    const std::int64_t length = steps.shape()[1];
    return fc(reshape(slice(steps, 1, length - 1, length), Shape{steps.shape()[0], steps.shape()[2]}));
  }
  Children children() override { return {{"rnn", &rnn}, {"fc", &fc}}; }
};

Model of_sizes(std::span<const int> sizes) {
  const int depth = sizes[0], width = sizes[1], length = sizes[2];
  return {"lstm",
          "a class for a sequence by two layers of LSTM",
          Shape{length, kFeatures},
          1000,
          4715496,
          [depth, width](const Variant& variant) { return std::make_shared<Lstm>(depth, width, variant.classes); },
          Shape{6, kFeatures}};
}

}  // namespace

Model lstm() {
  return sizable({{"depth", 2, "layers"}, {"width", 512, "units in each"}, {"length", 128, "steps"}}, of_sizes);
}

}  // namespace concord::models
