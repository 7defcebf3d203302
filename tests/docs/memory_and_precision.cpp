// The programs of docs/guide/mixed-precision.md, memory.md and reading-a-profile.md.
#include <iostream>

#include "guide_test.hpp"

namespace concord {
namespace {

nn::Sequential deep_network() {
  nn::Sequential net{nn::Conv2d{1, 8, 3, {.padding = 1}}, nn::ReLU{}};
  for (int i = 0; i < 8; ++i) {
    net.push(nn::Conv2d{8, 8, 3, {.padding = 1}});
    net.push(nn::ReLU{});
  }
  net.push(nn::Flatten{});
  net.push(nn::Linear{8 * 12 * 12, 4});
  return net;
}

TEST_CASE("guide: a training in bf16", "[docs]") {
  const DevicePtr device = test::guide_device();
  const Dataset data = data::synthetic(Shape{16}, 4, 256);
  nn::Sequential net{nn::Linear{16, 32}, nn::ReLU{}, nn::Linear{32, 4}};
  // [precision]
  const auto& faster = device->info().precisions;  // "fp32", and those of its matrix cores
  const bool has_bf16 = std::ranges::find(faster, "bf16") != faster.end();
  Trainer trainer{
      net, loss::cross_entropy, optim::AdamW{}, device, {.precision = has_bf16 ? Precision::bf16 : Precision::fp32}};
  trainer.fit(data, {.epochs = 5});
  // [end]
  CHECK(trainer.evaluate(data).loss < 1.4);
}

TEST_CASE("guide: a loop of one's own in fp16", "[docs]") {
  const DevicePtr device = test::guide_device();
  const auto variables = std::make_shared<Variables>(device, 1);
  nn::Sequential net{nn::Linear{2, 8}, nn::Linear{8, 1}};
  Graph graph;
  const Value x = graph.input("x", {DType::f32, Shape{16, 2}});
  const Value y = graph.input("y", {DType::f32, Shape{16, 1}});
  // [scale]
  const Precision precision = Precision::fp16;
  const Value loss = loss::mse(net(x), y);
  optim::minimize(loss, optim::Adam{}, {.loss_scale = optim::loss_scale_for(precision)});
  Program step = compile(graph, loss, variables, {.precision = precision});
  // [end]
  step.run();
  CHECK(variables->read(optim::kScale).values<float>()[0] > 0);
}

TEST_CASE("guide: a step within a memory budget", "[docs]") {
  const DevicePtr device = test::guide_device();
  const auto variables = std::make_shared<Variables>(device, 1);
  nn::Sequential net = deep_network();
  // [budget]
  Graph graph;
  const Value images = graph.input("images", {DType::f32, Shape{32, 1, 12, 12}});
  const Value labels = graph.input("labels", {DType::i32, Shape{32}});
  const Value loss = loss::cross_entropy(net(images), labels);
  optim::minimize(loss, optim::Sgd{.lr = 0.01});

  const Program plain = compile(graph, loss, variables);
  const std::size_t budget = plain.memory() * 3 / 4;
  const Program small = compile(graph, loss, variables, {.memory_budget = budget});
  std::cout << plain.memory() << " bytes, then " << small.memory() << ", with " << small.recomputed().launches
            << " launches run twice\n";
  // [end]
  CHECK(small.memory() <= budget);
  CHECK(small.recomputed().launches > 0);
  // [least]
  try {
    const Program impossible = compile(graph, loss, variables, {.memory_budget = 1000});
  } catch (const MemoryBudgetError& error) {
    std::cout << "at least " << error.least() << " bytes\n";
  }
  // [end]
}

TEST_CASE("guide: small batches that count as a large one", "[docs]") {
  const DevicePtr device = test::guide_device();
  const Dataset data = data::synthetic(Shape{1, 12, 12}, 4, 128);
  // [accumulate]
  Trainer trainer{deep_network(),
                  loss::cross_entropy,
                  optim::Sgd{.lr = 0.01},
                  device,
                  {.accumulate = 4, .memory_budget = std::size_t{64} << 20, .resident_fraction = 0.2}};
  trainer.fit(data, {.epochs = 1, .batch = 16});  // updates as with a batch of 64
  // [end]
  CHECK(trainer.steps_done() == 8);
}

TEST_CASE("guide: times of the launches of a step, and a timeline", "[docs]") {
  const test::InEmptyFolder folder;
  const DevicePtr device = test::guide_device();
  const auto variables = std::make_shared<Variables>(device, 1);
  nn::Sequential net = deep_network();
  Graph graph;
  const Value images = graph.input("images", {DType::f32, Shape{8, 1, 12, 12}});
  const Value y = net(images);
  // [trace]
  Program program = compile(graph, y, variables);
  const RunTimes times = measure(program, {.seconds = 0.1});
  std::cout << times.median_ms << " ms a run\n";
  for (const TraceEntry& launch : program.run_traced()) {
    std::cout << 1e3 * launch.seconds << " ms  " << launch.node << "  " << launch.kernel << '\n';
  }
  // [end]
  const Dataset data = data::synthetic(Shape{1, 12, 12}, 4, 64);
  Trainer trainer{deep_network(), loss::cross_entropy, optim::Sgd{}, device};
  // [timeline]
  timeline::Recording recording("run.json");
  {
    const timeline::Span span("my phase");  // until the end of the scope
    trainer.fit(data, {.epochs = 1});
  }
  recording.finish();
  // [end]
  CHECK(test::content_of("run.json").find("my phase") != std::string::npos);
}

}  // namespace
}  // namespace concord
