// A language model of characters: two layers of LSTM learn a text, letter by letter, and go on from the middle of
// the part that they have not seen.
//   ./char_lstm [device] [epochs] [file] [precision] [seed]      8 epochs of the GNU General Public License in fp32,
//   seed 1, unless given
// Expected: see the table in README.md; bench/text_vs_pytorch.py trains the same network in PyTorch.
#include <concord/concord.hpp>
#include <iostream>
#include <numbers>

using namespace concord;

constexpr std::int64_t kLayers = 2, kHidden = 256, kLength = 128, kBatch = 32;

/// Characters i32 (N, T) → logits of the next one at each place (N, T, characters).
struct CharLstm : nn::Module {
  nn::Embedding embedding;
  nn::LSTM lstm{64, kHidden, {.num_layers = kLayers, .batch_first = true, .dropout = 0.4F}};
  nn::Dropout dropout{0.4F};
  nn::Linear head;
  explicit CharLstm(std::int64_t characters) : embedding(characters, 64), head(kHidden, characters) {}
  Value forward(Value x) override { return head(dropout(lstm(embedding(x)))); }
  /// From a state on, which it replaces by the one at the end.
  Value operator()(Value x, nn::RecurrentState& state) {
    const Tracing tracing(x.graph(), *this);
    const auto [output, last] = lstm(embedding(x), state);
    state = last;
    return head(dropout(output));
  }
  using Module::operator();
  Children children() override { return {{"embedding", &embedding}, {"lstm", &lstm}, {"head", &head}}; }
};

struct BitsPrinter : Callback {
  void on_epoch(const EpochReport& report) override {
    std::cout << "epoch " << report.epoch << "/" << report.epochs << ": " << report.validation->loss / std::numbers::ln2
              << " bits per character, " << report.seconds << " s" << std::endl;
  }
};

/// The prompt and `count` characters behind it. The program takes one character and draws the next; what the network
/// remembers stays on the device.
std::string continued(std::string text, std::size_t count, CharLstm& net, const VariablesPtr& variables,
                      const std::string& alphabet) {
  Graph graph;
  graph.set_training(false);
  const auto held = [&](const char* name) {
    const TensorSpec spec{DType::f32, Shape{kLayers, 1, kHidden}};
    return graph.variable(std::make_shared<Variable>(Variable{name, spec, {}, false, {}}));
  };
  const nn::RecurrentState before{held("state.h"), held("state.c")};
  nn::RecurrentState state = before;
  const Value logits = net(graph.input("character", {DType::i32, Shape{1, 1}}), state);
  graph.assign(before.h, state.h);
  graph.assign(before.c, state.c);
  const Value next = random_categorical(logits / 0.6F);  // a low temperature: the likely ones more often
  advance_random(graph);
  Program step = compile(graph, {{next}}, variables);
  const std::size_t end = text.size() + count;
  for (std::size_t i = 0; i + 1 < end; ++i) {
    step.write("character", data::encode(alphabet, text.substr(i, 1)).reshaped(Shape{1, 1}));
    step.run();
    if (i + 1 == text.size()) text += data::decode(alphabet, step.read(next).values<std::int32_t>());
  }
  return text;
}

int main(int argc, char** argv) try {
  const auto device = Device::open(argc > 1 ? argv[1] : "auto");
  const std::int64_t epochs = argc > 2 ? std::stoi(argv[2]) : 8;
  const char* const file = argc > 3 ? argv[3] : "/usr/share/common-licenses/GPL-3";
  const Precision precision = precision_of(argc > 4 ? argv[4] : "fp32");
  const std::uint64_t seed = argc > 5 ? std::stoull(argv[5]) : 1;
  const data::Characters text = data::characters(file, {.length = kLength, .stride = 16});

  CharLstm net(static_cast<std::int64_t>(text.alphabet.size()));
  const std::int64_t steps = epochs * ((text.train.size() + kBatch - 1) / kBatch);
  Trainer trainer{net,
                  models::loss_of(models::Task::language),
                  optim::AdamW{.lr = 4e-3},
                  device,
                  {.seed = seed, .clip = {.norm = 1}, .precision = precision}};
  trainer.fit(text.train, {.epochs = epochs,
                           .batch = kBatch,
                           .validate = text.validation,
                           .schedule = optim::schedule::one_cycle(steps),
                           .callbacks = {std::make_shared<BitsPrinter>()}});
  const std::span<const std::int32_t> unseen = text.validation.features.values<std::int32_t>();
  const std::string prompt = data::decode(text.alphabet, unseen.subspan(unseen.size() / 2, 40));
  std::cout << continued(prompt, 400, net, trainer.variables(), text.alphabet) << '\n';
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
