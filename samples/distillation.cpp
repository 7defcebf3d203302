// Knowledge distillation (Hinton, Vinyals, Dean, 2015) on two devices at once: while the student learns from one batch
// on its device, the teacher looks at the next one on its own.
//   ./distillation [teacher's device] [student's device] [epochs] [samples]      cpu, auto, 2 epochs of 20,000 samples
#include <concord/concord.hpp>
#include <functional>
#include <future>
#include <iostream>
#include <numeric>

using namespace concord;

constexpr std::int64_t kBatch = 64;
constexpr float kTemperature = 4;

/// Pictures as bytes, turned into numbers from 0 to 1 on the device.
Value pictures(Graph& graph, std::int64_t count) {
  return graph.input("x", {DType::u8, Shape{count, 1, 28, 28}}) / 255.0F;
}

/// The student's step: its labels, and the teacher's opinion softened by the temperature.
Program learning(nn::Module& net, const VariablesPtr& variables) {
  Graph graph;
  const Value logits = net(pictures(graph, kBatch));
  const Value opinion = graph.input("opinion", {DType::f32, Shape{kBatch, 10}});
  const Value soft = loss::cross_entropy(logits / kTemperature, softmax(opinion / kTemperature));
  const Value hard = loss::cross_entropy(logits, graph.input("y", {DType::i32, Shape{kBatch}}));
  const Value loss = 0.1F * hard + 0.9F * kTemperature * kTemperature * soft;
  optim::minimize(loss, optim::Adam{.lr = 1e-3});
  return compile(graph, {{loss}}, variables);
}

/// The part of a data set that a network on its device gets right.
double accuracy(nn::Module& net, const VariablesPtr& variables, const Dataset& data) {
  Graph graph;
  graph.set_training(false);
  const Value answers = argmax(net(pictures(graph, data.size())), 1);
  Program look = compile(graph, {{answers}}, variables);
  look.write("x", data.features);
  look.run();
  const Tensor given = look.read(answers);
  const auto a = given.values<std::int32_t>(), b = data.labels.values<std::int32_t>();
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0, std::plus<>(), std::equal_to<>()) /
         static_cast<double>(data.size());
}

int main(int argc, char** argv) try {
  const auto teachers = Device::open(argc > 1 ? argv[1] : "cpu"), students = Device::open(argc > 2 ? argv[2] : "auto");
  const std::int64_t epochs = argc > 3 ? std::stoi(argv[3]) : 2;
  const Dataset train = data::slice(data::fashion_mnist("train"), 0, argc > 4 ? std::stoi(argv[4]) : 20000);
  const Dataset test = data::fashion_mnist("test");
  const std::int64_t batches = train.size() / kBatch;
  if (batches == 0)
    throw ArgumentError(std::to_string(train.size()) + " samples are less than a batch of 64: take more");

  Trainer teacher{models::make("lenet"), loss::cross_entropy, optim::Adam{}, teachers, {.seed = 1}};
  teacher.fit(train, {.epochs = epochs});
  std::cout << "teacher on " << teachers->info().name << ": " << 100 * teacher.evaluate(test).accuracy.value()
            << " %\n";

  nn::Sequential net{nn::Flatten{}, nn::Linear{784, 32}, nn::ReLU{}, nn::Linear{32, 10}};
  const auto variables = std::make_shared<Variables>(students, 2);
  Program step = learning(net, variables);
  const auto batch = [&](std::int64_t i) { return data::slice(train, i % batches * kBatch, kBatch); };
  const auto ask = [&](std::int64_t i) {
    return std::async(std::launch::async, [&, i] { return teacher.predict(batch(i), kBatch); });
  };
  std::future<Tensor> next = ask(0);
  for (std::int64_t i = 0; i < epochs * batches; ++i) {
    const Tensor opinion = next.get();
    next = ask(i + 1);
    step.write("x", batch(i).features);
    step.write("y", batch(i).labels);
    step.write("opinion", opinion);
    step.run();
  }
  next.wait();
  std::cout << "student on " << students->info().name << ": " << 100 * accuracy(net, variables, test) << " %\n";
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
