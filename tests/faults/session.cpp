// The sessions' networks and what comes out of them.
#include "faults/session.hpp"

#include <cmath>

#include "concord/device/tuner.hpp"
#include "files.hpp"
#include "forwarding_device.hpp"
#include "opencl/opencl_test.hpp"
#include "train/small_training.hpp"

namespace concord::test {
namespace {

std::vector<std::byte> bytes_of(const Tensor& tensor) { return {tensor.bytes().begin(), tensor.bytes().end()}; }

Outcome weights_of(const Variables& variables) {
  Outcome all;
  for (const auto& [name, tensor] : variables.read_all()) all[name] = bytes_of(tensor);
  return all;
}

nn::Sequential classifier() {
  return nn::Sequential{nn::Conv2d{1, 4, 3, {.padding = 1}},
                        nn::BatchNorm2d{4},
                        nn::ReLU{},
                        nn::MaxPool2d{2},
                        nn::Dropout{0.2F},
                        nn::Flatten{},
                        nn::Linear{64, 3}};
}

/// A strided convolution under another one, whose data gradient is one product a phase, and a resampling.
nn::Sequential strided() {
  return nn::Sequential{nn::Conv2d{2, 4, 3, {.padding = 1}},
                        nn::Conv2d{4, 4, 3, {.stride = 2, .padding = 1}},
                        nn::Upsample{{.scale_factor = {2}, .mode = Interpolation::linear}},
                        nn::GlobalAvgPool2d{},
                        nn::Flatten{},
                        nn::Linear{4, 3}};
}

/// A step of training of it, with its samples; the loss is called "loss".
Program strided_step(const std::string& device, const CompileOptions& options) {
  Graph graph;
  nn::Sequential net = strided();
  const Value x = graph.input("x", {DType::f32, Shape{2, 2, 8, 8}});
  const Value labels = graph.input("labels", {DType::i32, Shape{2}});
  const Value loss = loss::cross_entropy(net(x), labels);
  graph.rename(loss, "loss");
  optim::minimize(loss, optim::Sgd{.lr = 0.1});
  Program program = compile(graph, {&loss, 1}, std::make_shared<Variables>(Device::open(device), 3), options);
  program.write("x", Tensor::of(Shape{2, 2, 8, 8}, std::vector<float>(256, 0.5F)));
  program.write("labels", Tensor::of(Shape{2}, std::vector<std::int32_t>{0, 2}));
  return program;
}

Outcome outcome_of(const Program& program) {
  Outcome outcome = weights_of(program.variables());
  outcome["loss"] = bytes_of(program.read("loss"));
  return outcome;
}

class Ending {
 public:
  explicit Ending(void (*what)()) : what_(what) {}
  Ending(const Ending&) = delete;
  Ending& operator=(const Ending&) = delete;
  ~Ending() { what_(); }

 private:
  void (*what_)();
};

/// (60, 70) by (70, 80)
Value product(Graph& graph) {
  return matmul(graph.input("a", {DType::f32, {60, 70}}), graph.input("b", {DType::f32, {70, 80}}));
}

}  // namespace

Outcome open(const std::string& device) {
  const DeviceInfo info = Device::open(device)->info();
  const auto text = std::as_bytes(std::span(info.name));
  return {{"name", {text.begin(), text.end()}}};
}

Outcome train(const std::string& device) {
  const Dataset data = data::synthetic(Shape{1, 8, 8}, 3, 12, 0);
  Trainer trainer{classifier(),
                  loss::cross_entropy,
                  optim::Adam{.lr = 0.01},
                  Device::open(device),
                  {.seed = 4, .resident_fraction = 0}};
  const History history = trainer.fit(data, {.epochs = 1, .batch = 4, .validate = data});
  Outcome outcome = weights_of(*trainer.variables());
  // A validation that finds no memory goes on in smaller batches: it counts more of them, and sums in another order.
  std::erase_if(outcome, [](const auto& value) { return value.first.starts_with("eval."); });
  const EpochReport& epoch = history.epochs.back();
  const double validation = std::round(1e4 * epoch.validation->loss);
  const std::vector losses{static_cast<float>(epoch.loss), static_cast<float>(validation)};
  outcome["loss"] = bytes_of(Tensor::of(Shape{2}, losses));
  return outcome;
}

Outcome trace(const std::string& device) {
  const TemporaryFolder folder;
  timeline::Recording recording(folder / "trace.json");
  Program program = strided_step(device, {});
  program.run();
  static_cast<void>(program.run_traced());
  recording.finish();
  return outcome_of(program);
}

Outcome replay(const std::string& device) {
  Program program = strided_step(device, {.retain = Retain::fused});
  std::map<std::string, Tensor> first;
  program.replay([](const std::string&) { return nullptr; },
                 [&](const ReplayedNode& node) {
                   for (std::size_t k = 0; k < node.results.size(); ++k) first[node.outputs[k]] = node.results[k];
                 });
  program.replay(
      [&](const std::string& name) -> const Tensor* {
        const auto found = first.find(name);
        return found == first.end() ? nullptr : &found->second;
      },
      [](const ReplayedNode&) {});
  program.commit();
  return outcome_of(program);
}

Outcome compare_beside(const std::string& device) {
  // Energy takes seconds to measure.
  const DebugOption no_meters("nvml=/nonexistent,powercap=/nonexistent,hwmon=/nonexistent");
  const std::vector<DevicePtr> sides{std::make_shared<OtherDevice>(Device::open(device), "one"),
                                     std::make_shared<OtherDevice>(Device::open(device), "two")};
  nn::Sequential net{nn::Conv2d{2, 4, 3}, nn::ReLU{}, nn::GlobalAvgPool2d{}, nn::Flatten{}, nn::Linear{4, 3}};
  const Comparison result =
      compare(net, "small", loss::cross_entropy, optim::Sgd{.lr = 0.1}, data::synthetic(Shape{2, 8, 8}, 3, 6), sides,
              {.steps = 2, .batch = 3, .seconds = 1e-4, .check_every = 1});
  if (const std::string why = result.disagreement(); !why.empty()) throw Error(why);
  Outcome outcome;
  for (const DeviceRun& run : result.runs) {
    outcome["losses of " + run.device.id] =
        bytes_of(Tensor::of(Shape{static_cast<std::int64_t>(run.losses.size())}, run.losses));
  }
  return outcome;
}

Outcome multiply(const std::string& device) {
  const DebugOption way("gemm", "clblast");
  Graph graph;
  const Value c = product(graph);
  Program program = compile(graph, {&c, 1}, std::make_shared<Variables>(Device::open(device), 3));
  program.write("a", Tensor::of(Shape{60, 70}, std::vector<float>(60 * 70, 0.5F)));
  program.write("b", Tensor::of(Shape{70, 80}, std::vector<float>(70 * 80, 3)));
  program.run();
  return {{"c", bytes_of(program.read(c))}};
}

Outcome predict(const std::string& device) {
  const Dataset data = data::synthetic(Shape{1, 8, 8}, 3, 5, 0);
  Trainer trainer{classifier(), loss::cross_entropy, optim::Sgd{.lr = 0.1}, Device::open(device), {.seed = 4}};
  return {{"outputs", bytes_of(trainer.predict(data, 3))}};
}

Outcome sequences(const std::string& device) {
  constexpr std::int64_t kSteps = 4, kSequences = 256;  // rows enough for weights that are packed
  Graph graph;
  nn::Sequential net{nn::LSTM{3, 8}, nn::Linear{8, 4}, nn::Softmax{}};
  const Value y = net(graph.input("x", {DType::f32, Shape{kSteps, kSequences, 3}}));
  const Value loss = mean(y * y);
  graph.rename(loss, "loss");
  optim::minimize(loss, optim::Sgd{.lr = 0.1});
  Program program = compile(graph, {&loss, 1}, std::make_shared<Variables>(Device::open(device), 3));
  program.write("x", Tensor::of(Shape{kSteps, kSequences, 3}, std::vector<float>(kSteps * kSequences * 3, 0.5F)));
  program.run();
  return outcome_of(program);
}

Outcome build_anew(const std::string& device) {
  const TemporaryFolder folder;
  const Setting cache("CONCORD_CACHE_DIR", folder.path().string());
  const DebugOption held_to("limit.local_memory=16384");
  set_log([](LogLevel, std::string_view) {}, LogLevel::debug);
  const Ending silence([] { set_log({}); });
  Graph graph;
  const Value y = graph.input("x", {DType::f32, Shape{4}}) + 1;
  Program program = compile(graph, {&y, 1}, std::make_shared<Variables>(Device::open(device), 3));
  program.write("x", Tensor::of(Shape{4}, std::vector<float>{1, 2, 3, 4}));
  program.run();
  return {{"y", bytes_of(program.read(y))}};
}

Outcome tune(const std::string& device_id) {
  const DevicePtr device = Device::open(device_id);
  Tuner* const tuner = device->tuner();
  if (tuner == nullptr) return {};
  Graph graph;
  const Value c = product(graph);
  const std::vector<TunableProduct> products = tuner->products_of([&] {
    static_cast<void>(compile(graph, {&c, 1}, std::make_shared<Variables>(device, 3)));
  });
  for (const TunableProduct& one : products) static_cast<void>(tuner->tune(one.key, 1e3));
  return {};
}

}  // namespace concord::test
