// A small GPT: a transformer learns a text letter by letter and goes on from the middle of the part that it has not
// seen, with the keys and values of earlier letters kept on the device.
//   ./tiny_gpt [device] [epochs] [file] [precision] [seed]      12 epochs of the GNU General Public License in fp32,
//   seed 1, unless given
// Expected: see the table in README.md; bench/text_vs_pytorch.py trains the same network in PyTorch.
#include <concord/concord.hpp>
#include <iostream>
#include <numbers>

using namespace concord;

constexpr std::int64_t kWidth = 128, kHeads = 4, kBlocks = 4, kLength = 128, kBatch = 16;

/// Characters i32 (N, T) → logits of the next one at each place (N, T, characters).
struct TinyGpt : nn::Module {
  nn::Embedding tokens;
  nn::LearnedPositions positions{kLength, kWidth};
  nn::TransformerEncoder blocks{kBlocks,
                                kWidth,
                                kHeads,
                                {.feed_forward = 4 * kWidth, .dropout = 0.2F, .activation = gelu, .norm_first = true},
                                true};
  nn::Linear head;
  explicit TinyGpt(std::int64_t characters) : tokens(characters, kWidth), head(kWidth, characters) {
    tokens.weight()->init = positions.weight()->init = nn::init::normal(0, 0.02);
  }
  Value forward(Value x) override {
    return head(blocks(positions(tokens(x)), nn::AttentionMask{.causal = ops::Causal::first}));
  }
  /// x goes on behind what the caches hold.
  Value operator()(Value x, std::vector<nn::KeyValueCache>& caches) {
    const Tracing tracing(x.graph(), *this);
    return head(blocks(positions(tokens(x), caches[0].position(x.graph())), caches));
  }
  using Module::operator();
  Children children() override {
    return {{"tokens", &tokens}, {"positions", &positions}, {"blocks", &blocks}, {"head", &head}};
  }
};

struct BitsPrinter : Callback {
  void on_epoch(const EpochReport& report) override {
    std::cout << "epoch " << report.epoch << "/" << report.epochs << ": " << report.validation->loss / std::numbers::ln2
              << " bits per character, " << report.seconds << " s" << std::endl;
  }
};

/// The text and `count` characters behind it. The program takes one character and draws the next.
std::string continued(std::string text, std::size_t count, TinyGpt& net, const VariablesPtr& variables,
                      const std::string& alphabet) {
  Graph graph;
  graph.set_training(false);
  std::vector<nn::KeyValueCache> caches = net.blocks.make_caches(1, kLength);
  const Value logits = net(graph.input("character", {DType::i32, Shape{1, 1}}), caches);
  const Value next = random_categorical(logits / 0.6F);  // a low temperature: the likely ones more often
  advance_random(graph);
  Program step = compile(graph, {{next}}, variables);
  const std::size_t end = text.size() + count;
  for (std::size_t i = 0, held = 0; i + 1 < end; ++i, ++held) {
    if (held == kLength) {  // full: begin anew with the last half
      for (const nn::KeyValueCache& cache : caches) cache.reset(*variables);
      held = 0;
      i -= kLength / 2;
    }
    step.write("character", data::encode(alphabet, text.substr(i, 1)).reshaped(Shape{1, 1}));
    step.run();
    if (i + 1 == text.size()) text += data::decode(alphabet, step.read(next).values<std::int32_t>());
  }
  return text;
}

int main(int argc, char** argv) try {
  const auto device = Device::open(argc > 1 ? argv[1] : "auto");
  const std::int64_t epochs = argc > 2 ? std::stoi(argv[2]) : 12;
  const char* const file = argc > 3 ? argv[3] : "/usr/share/common-licenses/GPL-3";
  const Precision precision = precision_of(argc > 4 ? argv[4] : "fp32");
  const std::uint64_t seed = argc > 5 ? std::stoull(argv[5]) : 1;
  const data::Characters text = data::characters(file, {.length = kLength, .stride = 16});

  TinyGpt net(static_cast<std::int64_t>(text.alphabet.size()));
  const std::int64_t steps = epochs * ((text.train.size() + kBatch - 1) / kBatch);
  Trainer trainer{net,
                  models::loss_of(models::Task::language),
                  optim::AdamW{.lr = 2e-3, .weight_decay = 0.1},
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
