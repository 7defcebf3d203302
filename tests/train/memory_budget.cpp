// Training under a memory budget: the same bits as without, in the bytes that were allowed, or an error that tells how
// many it takes.
#include <fmt/format.h>

#include <algorithm>
#include <regex>

#include "concord/compare/run/training_step.hpp"
#include "concord/core/human_bytes.hpp"
#include "small_training.hpp"

using namespace concord;
using namespace concord::test;

namespace {

constexpr std::uint64_t kSeed = 3;
constexpr int kSteps = 3;

/// The graph of a training step of a network of the zoo, dropout included, with a batch of samples.
struct Step {
  Step(std::string_view name, std::int64_t batch, const DevicePtr& device)
      : model(models::find(name)),
        network(models::make(name, {.input = model.least})),
        features(models::batch_of(model, model.least, batch)),
        labels(target(batch)),
        graph(*network, models::loss_of(model.task), optim::Adam{.lr = 0.01}, {}, Precision::fp32, source(), batch) {
    std::int32_t next = 0;
    if (features.dtype() == DType::i32) {
      for (std::int32_t& word : features.values<std::int32_t>()) word = (next += 7) % model.classes;
    } else {
      for (float& x : features.values<float>()) x = std::sin(static_cast<float>(++next));
    }
    for (std::int32_t& label : labels.values<std::int32_t>()) label = (next += 3) % model.classes;
    memory = program(device, 0).memory();
  }

  [[nodiscard]] Program program(const DevicePtr& device, std::size_t budget) const {
    return graph.compiled(std::make_shared<Variables>(device, kSeed), {.memory_budget = budget});
  }

  [[nodiscard]] Tensor target(std::int64_t batch) const {
    Graph traced;
    return Tensor(models::target_of(
        model.task, (*network)(traced.input("x", models::batch_of(model, model.least, batch))).shape()));
  }

  [[nodiscard]] train::Source source() const {
    Dataset data;
    data.features = features;
    data.labels = labels;
    return train::streamed_source(data);
  }

  const models::Model& model;
  std::shared_ptr<nn::Module> network;
  Tensor features, labels;
  TrainingStep graph;
  std::size_t memory = 0;  // without a budget
};

/// Losses and all variables after some steps.
std::map<std::string, std::vector<std::byte>> outcome(const Step& step, Program program) {
  std::map<std::string, std::vector<std::byte>> all;
  const auto add = [&](const std::string& name, const Tensor& tensor) {
    all[name].assign(tensor.bytes().begin(), tensor.bytes().end());
  };
  for (int run = 0; run < kSteps; ++run) {
    feed(program, {{"features", step.features}, {"labels", step.labels}});
    program.run();
    add(fmt::format("loss {}", run), program.read(step.graph.loss));
  }
  for (const auto& [name, tensor] : program.variables().read_all()) add(name, tensor);
  return all;
}

std::size_t least_budget(const Step& step, const DevicePtr& device) {
  try {
    static_cast<void>(step.program(device, 1));
  } catch (const MemoryBudgetError& error) {
    return error.least();
  }
  FAIL("a budget of one byte was held");
  return 0;
}

}  // namespace

TEST_CASE("a training in less memory has the same bits", "[train][recompute]") {
  const auto [name, batch] =
      GENERATE(table<const char*, std::int64_t>({{"lenet", 16}, {"resnet20", 4}, {"char_lstm", 64}, {"gpt_tiny", 8}}));
  for (const DevicePtr& device : devices()) {
    INFO(name << " on " << device->info().id);
    const Step step(name, batch, device);
    const auto expected = outcome(step, step.program(device, 0));
    CHECK(expected.size() > 4 + kSteps);
    const std::size_t least = least_budget(step, device);
    CHECK(least < step.memory);
    for (const std::size_t budget : {least, (least + step.memory) / 2}) {
      Program program = step.program(device, budget);
      CHECK(program.memory() <= budget);
      const Recomputed recomputed = program.recomputed();
      if (budget == least) CHECK(recomputed.launches > 0);
      CHECK((recomputed.launches > 0) == (recomputed.cost.bytes > 0));
      CHECK(recomputed.cost.flops < program.cost().flops / 2);
      CHECK(outcome(step, std::move(program)) == expected);
    }
  }
}

TEST_CASE("a trainer keeps to its budget and says the batch that fits", "[train][recompute]") {
  const DevicePtr& device = devices().front();
  const Dataset data = data::synthetic(Shape{1, 28, 28}, 3, 64, 0);
  const auto trainer_with = [&](std::size_t budget) {
    return Trainer{
        image_net(), loss::cross_entropy, optim::Sgd{.lr = 0.01}, device, {.seed = kSeed, .memory_budget = budget}};
  };
  std::string message;
  const auto least_of = [&](std::int64_t batch, std::size_t budget) -> std::size_t {
    try {
      trainer_with(budget).fit(data, {.batch = batch, .max_steps = 1});
    } catch (const MemoryBudgetError& error) {
      message = error.what();
      return error.least();
    }
    return 0;
  };
  // Kernels may take a workspace for each thread, so a number of bytes would not do on every machine.
  const std::size_t budget = least_of(1, 1);
  const std::size_t least = least_of(64, budget);
  INFO(message);
  REQUIRE(least > budget);
  CHECK_THAT(message,
             contains("the memory budget is " + human_bytes(budget)) && contains(fmt::format("({} bytes)", least)));
  std::smatch match;
  REQUIRE(std::regex_search(message, match, std::regex("largest batch that fits is ([0-9]+)")));
  CHECK(least_of(std::stol(match[1]), budget) == 0);

  Trainer in_less = trainer_with(least), in_full = trainer_with(0);
  const History less = in_less.fit(data, {.epochs = 2, .batch = 64, .validate = data});
  const History full = in_full.fit(data, {.epochs = 2, .batch = 64, .validate = data});
  CHECK(less.epochs.back().loss == full.epochs.back().loss);
  CHECK(bytes_of(in_less) == bytes_of(in_full));
}
