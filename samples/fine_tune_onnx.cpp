// Fine-tuning of an ONNX file: a new head on a frozen base. The base learns the ten classes of clothing and is written
// as an ONNX file, as another program would do it. Its features serve a new task, four groups of clothing, for which
// there are few samples.
//   ./fine_tune_onnx [device] [samples of the base] [samples of the new task]      auto, 20000, 30
#include <array>
#include <concord/concord.hpp>
#include <iostream>

using namespace concord;

/// Pictures (N, 1, 28, 28) → "features" (N, 64) and "class" (N, 10).
struct Base : nn::Module {
  nn::Sequential features{nn::Conv2d{1, 16, 5},  nn::ReLU{},          nn::MaxPool2d{2},
                          nn::Conv2d{16, 32, 5}, nn::ReLU{},          nn::MaxPool2d{2},
                          nn::Flatten{},         nn::Linear{512, 64}, nn::ReLU{}};
  nn::Linear head{64, 10};
  [[nodiscard]] Children children() override { return {{"features", &features}, {"head", &head}}; }
  [[nodiscard]] Values forward_values(const Values& in) override {
    const Value seen = features(in.only());
    return {{"features", seen}, {"class", head(seen)}};
  }
};

/// The first samples, with a group in place of each class: tops, trousers and dresses, shoes, bags.
Dataset grouped(const Dataset& all, std::int64_t count) {
  constexpr std::array<std::int32_t, 10> kGroups{0, 1, 0, 1, 0, 2, 0, 2, 3, 2};
  Dataset part = data::slice(all, 0, count);
  for (std::int32_t& label : part.labels.values<std::int32_t>()) label = kGroups.at(static_cast<std::size_t>(label));
  part.classes = 4;
  return part;
}

double trained_accuracy(nn::Sequential net, const Dataset& train, const Dataset& test, const DevicePtr& device) {
  Trainer trainer{net, loss::cross_entropy, optim::Adam{.lr = 2e-3}, device, {.seed = 2}};
  trainer.fit(train, {.epochs = 40, .batch = 10});
  return 100 * trainer.evaluate(test).accuracy.value();
}

int main(int argc, char** argv) try {
  const DevicePtr device = Device::open(argc > 1 ? argv[1] : "auto");
  const std::int64_t base_samples = argc > 2 ? std::stoi(argv[2]) : 20000, few = argc > 3 ? std::stoi(argv[3]) : 30;
  const Dataset train = data::fashion_mnist("train"), test = data::fashion_mnist("test");

  Base network;
  Trainer base{network, {{"class", loss::cross_entropy}}, optim::Adam{}, device, {.seed = 1}};
  base.fit(data::slice(train, 0, base_samples), {.epochs = 2});
  onnx::save("base.onnx", network,
             {.input = Shape{1, 1, 28, 28}, .batch = "N", .weights = base.variables()->read_all()});

  // From here on there is only the file.
  onnx::Network features = onnx::load("base.onnx", {.outputs = {"features"}});
  features.freeze();
  nn::Sequential tuned, fresh;
  tuned.push("base", features).push("head", nn::Linear{64, 4});
  fresh.push("base", Base{}.features).push("head", nn::Linear{64, 4});
  const Dataset new_train = grouped(train, few), new_test = grouped(test, test.size());
  std::cout << "four groups, " << new_train.size()
            << " samples: " << trained_accuracy(tuned, new_train, new_test, device)
            << " % with a new head on the frozen base, " << trained_accuracy(fresh, new_train, new_test, device)
            << " % from nothing\n";
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
