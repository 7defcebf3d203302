// Names say nothing: whatever a child is called, its weights are trained, saved, resumed, averaged and frozen as
// others.
#include <set>

#include "concord/train/trainer.hpp"
#include "files.hpp"
#include "train/small_training.hpp"

using namespace concord;
using namespace concord::test;

namespace {

std::vector<std::string> hostile_names() {
  using namespace std::string_literals;
  return {"data",
          "eval",
          "train",
          "optim",
          "ema",
          "grad",
          "update",
          "random",
          "a.b",
          "a/b",
          "train.",
          "optim.",
          "eval.",
          "0",
          "007",
          "12",
          "-1",
          "1e999",
          ".",
          "..",
          " ",
          "*",
          "?",
          "[x]",
          "\\",
          "\"q\"",
          "'",
          "{}",
          "a:1",
          "new\nline",
          "tab\tx",
          "nul\0x"s,
          "слой",
          "层",
          "été",
          "🙂",
          "__metadata__",
          "lr",
          "weight",
          "loss_sum",
          "cursor",
          "features",
          "labels",
          "running_mean",
          "num_batches_tracked",
          std::string(10'000, 'x')};
}

/// A chain with a child of each name.
nn::Sequential named_net(const std::vector<std::string>& names) {
  nn::Sequential net;
  net.push("first", nn::Linear{6, 4});
  for (const std::string& name : names) {
    net.push(name, nn::Sequential().push(name, nn::Linear{4, 4}).push("norm", nn::LayerNorm{4}));
  }
  net.push("last", nn::Linear{4, 3});
  return net;
}

/// Whose names are those of averages of the others: "ema.fc" beside the average of "fc".
nn::Sequential net_with_ema() {
  return nn::Sequential()
      .push("fc", nn::Linear{6, 8})
      .push("ema",
            nn::Sequential().push("fc", nn::Linear{8, 8}).push("ema", nn::Sequential().push("fc", nn::Linear{8, 8})))
      .push("last", nn::Linear{8, 3});
}

template <class Make>
void check_resume(const DevicePtr& device, const TrainerOptions& options, Make make) {
  const Dataset data = small_data(40);
  const TemporaryFolder folder;
  const auto path = folder / "run.safetensors", weights = folder / "net.safetensors";
  const FitOptions fit{.epochs = 3, .batch = 10};
  const auto trainer = [&](std::uint64_t seed) {
    TrainerOptions own = options;
    own.seed = seed;
    return Trainer{make(), loss::cross_entropy, optim::Adam{.lr = 0.01}, device, own};
  };
  Trainer whole = trainer(4);
  whole.fit(data, fit);

  FitOptions first_part = fit;
  first_part.checkpoint = path;
  first_part.max_steps = 6;
  Trainer stopped = trainer(4);
  stopped.fit(data, first_part);
  Trainer resumed = trainer(99);
  resumed.resume(path);
  resumed.fit(data, fit);
  CHECK(bytes_of(resumed) == bytes_of(whole));
  CHECK(resumed.evaluate(data).loss == whole.evaluate(data).loss);

  whole.save(weights);
  Trainer loaded = trainer(7);
  loaded.load(weights);
  CHECK(loaded.evaluate(data).loss == whole.evaluate(data).loss);
}

}  // namespace

TEST_CASE("a training resumes to the bit whatever its parts are called", "[train]") {
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    check_resume(device, {}, [] { return named_net(hostile_names()); });
    check_resume(device, {.ema_decay = 0.9}, [] { return named_net({"data", "eval", "ema", "optim", "train"}); });
  }
}

TEST_CASE("children named data and eval are in weights and checkpoints", "[train]") {
  const TemporaryFolder folder;
  Trainer trainer{named_net(hostile_names()), loss::cross_entropy, optim::Sgd{.lr = 0.1}, devices().front()};
  trainer.fit(small_data(20), {.batch = 10});
  trainer.save(folder / "net");
  trainer.save_checkpoint(folder / "run");
  const auto weights = io::read_safetensors(folder / "net").tensors;
  const auto checkpoint = io::load_checkpoint(folder / "run").tensors;
  CHECK(weights.size() == 4 + 4 * hostile_names().size());
  for (const std::string& name : hostile_names()) {
    INFO(name.substr(0, 40));
    for (const auto& suffix : {"." + name + ".weight", "." + name + ".bias", std::string(".norm.weight")}) {
      CHECK(weights.contains(name + suffix));
      CHECK(checkpoint.contains(name + suffix));
    }
  }
}

TEST_CASE("an average has a name of its own beside a parameter of its usual name", "[train]") {
  const Dataset data = small_data(40);
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    check_resume(device, {.ema_decay = 0.9}, net_with_ema);
    Trainer trainer{net_with_ema(), loss::cross_entropy, optim::Sgd{.lr = 0.1}, device, {.seed = 4, .ema_decay = 0.5}};
    Trainer plain{net_with_ema(), loss::cross_entropy, optim::Sgd{.lr = 0.1}, device, {.seed = 4}};
    trainer.fit(data, {.epochs = 2, .batch = 10});
    plain.fit(data, {.epochs = 2, .batch = 10});
    const auto value = [](const Trainer& of, const std::string& name) { return of.variables()->read(name).clone(); };
    const auto same = [](const Tensor& a, const Tensor& b) { return std::ranges::equal(a.bytes(), b.bytes()); };
    for (const char* name : {"fc.weight", "ema.fc.weight", "ema.ema.fc.weight"}) {
      INFO(name);
      CHECK(same(value(trainer, name), value(plain, name)));  // averages do not touch what is trained
      CHECK_FALSE(same(value(trainer, name),
                       value(trainer, trainer.variables()->related(name, VariableRole::average).value())));
    }
  }
}

TEST_CASE("loading weights does not write to a child that is named as an average", "[train]") {
  const TemporaryFolder folder;
  const DevicePtr& device = devices().front();
  Trainer first{net_with_ema(), loss::cross_entropy, optim::Sgd{}, device, {.seed = 1}};
  first.prepare({DType::f32, Shape{6}});
  first.save(folder / "net");
  Trainer second{net_with_ema(), loss::cross_entropy, optim::Sgd{}, device, {.seed = 2}};
  second.load(folder / "net");
  second.prepare({DType::f32, Shape{6}});
  second.save(folder / "again");
  CHECK(content_of(folder / "again") == content_of(folder / "net"));
}

TEST_CASE("a checkpoint has the names that it has always had", "[train]") {
  const TemporaryFolder folder;
  Trainer trainer = small_trainer(devices().front(), {.accumulate = 2, .ema_decay = 0.9});
  trainer.fit(small_data(40), {.batch = 10});
  trainer.save_checkpoint(folder / "run");
  std::set<std::string> names,
      expected{"optim.lr",     "optim.ok",     "optim.step",    "optim.gathered", "optim.gathered_weight",
               "train.cursor", "random.state", "train.loss_sum"};
  for (const auto& [name, tensor] : io::load_checkpoint(folder / "run").tensors) names.insert(name);
  for (const std::string name : {"0.weight", "0.bias", "3.weight", "3.bias"}) {
    expected.insert({name, "ema." + name});
    for (const char* state : {".exp_avg", ".exp_avg_sq", ".accumulated"}) expected.insert("optim." + name + state);
  }
  CHECK(names == expected);
}

TEST_CASE("groups take parameters by any name", "[train]") {
  const auto escaped = [](const std::string& name) {
    std::string pattern;
    for (const char c : name) pattern += (c == '*' || c == '?' || c == '\\' ? "\\" : "") + std::string(1, c);
    return pattern;
  };
  const Dataset data = small_data(20);
  const std::vector<std::string> all{"*", "?", "\\", "data", "层", "new\nline", "optim."};
  for (const std::string& name : all) {
    INFO(name);
    Trainer trainer{named_net(all),
                    loss::cross_entropy,
                    optim::Sgd{.lr = 0.1},
                    devices().front(),
                    {.groups = {{.match = optim::named(escaped(name) + ".*"), .frozen = true}}}};
    trainer.prepare(data.feature_spec());
    const auto before = bytes_of(trainer);
    trainer.fit(data, {.batch = 10});
    const auto after = bytes_of(trainer);
    for (const std::string& other : all) {
      INFO(other);
      const std::string weight = other + "." + other + ".weight";
      CHECK((before.at(weight) == after.at(weight)) == (other == name));
    }
  }
}

TEST_CASE("a name that a training has for itself is refused and named", "[train]") {
  struct Holder : nn::Module {
    std::string name;
    VariablePtr own = make_parameter(Shape{6}, nn::init::constant(1));
    nn::Linear last{6, 3};
    Value forward(Value x) override { return last(x * parameter(x.graph(), own, name)); }
    Children children() override { return {{"last", &last}}; }
  };
  const Dataset data = small_data(20);
  for (const auto& [module, parameter] : std::vector<std::pair<std::string, std::string>>{
           {"optim", "lr"}, {"optim", "step"}, {"train", "cursor"}, {"train", "loss_sum"}, {"optim", "ok"}}) {
    INFO(module << "." << parameter);
    Holder holder;
    holder.name = parameter;
    Trainer trainer{nn::Sequential().push(module, holder), loss::cross_entropy, optim::Sgd{}, devices().front()};
    CHECK_THROWS_AS(trainer.fit(data, {.batch = 10}), Error);
    CHECK_THROWS_WITH(trainer.fit(data, {.batch = 10}),
                      test::contains("'" + module + "." + parameter + "'") && test::contains("name"));
  }
}

TEST_CASE("a network with a parameter of a random state's name trains", "[train]") {
  struct Holder : nn::Module {
    VariablePtr own = make_parameter(Shape{6}, nn::init::constant(1));
    Value forward(Value x) override { return x * parameter(x.graph(), own, "state"); }
  };
  check_resume(devices().front(), {}, [] {
    return nn::Sequential().push("random", Holder{}).push("last", nn::Linear{6, 3});
  });
}
