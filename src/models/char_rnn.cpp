// Language models of characters with two recurrent layers (Karpathy, "The Unreasonable Effectiveness of Recurrent
// Neural Networks", 2015): characters i32 (N, T) → logits of the next one (N, T, alphabet).
#include "concord/models/blocks.hpp"
#include "concord/models/networks.hpp"
#include "concord/models/transformer.hpp"
#include "concord/nn/recurrent.hpp"

namespace concord::models {
namespace {

constexpr int kEmbedded = 64, kHidden = 256;

template <class Recurrent>
struct CharRnn : nn::Module {
  Embedding embedding;
  Recurrent rnn;
  nn::Linear decoder;
  explicit CharRnn(const Variant& variant)
      : embedding(variant.classes, kEmbedded, 1),
        rnn(kEmbedded, kHidden, {.num_layers = 2, .batch_first = true, .dropout = variant.rate(0.25F)}),
        decoder(kHidden, variant.classes) {}
  Value forward(Value x) override { return decoder(rnn(embedding(x))); }
  Children children() override { return {{"embedding", &embedding}, {"rnn", &rnn}, {"decoder", &decoder}}; }
};

template <class Recurrent>
Model model(std::string_view name, std::string_view description, std::int64_t parameters) {
  return {name,
          description,
          Shape{64},
          96,
          parameters,
          [](const Variant& variant) -> std::shared_ptr<nn::Module> {
            return std::make_shared<CharRnn<Recurrent>>(variant);
          },
          Shape{12},
          Task::language,
          DType::i32};
}

}  // namespace

Model char_lstm() { return model<nn::LSTM>("char_lstm", "characters by two layers of LSTM", 886880); }
Model char_gru() { return model<nn::GRU>("char_gru", "characters by two layers of GRU", 672864); }

}  // namespace concord::models
