// Parameters that several stages of a network read: each stage sums its own gradient over the batches of an update, and
// sends it once.
#include <fmt/format.h>

#include "collective/counting_group.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/matmul.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/reduce.hpp"
#include "concord/train/stage_plan.hpp"
#include "train/staged_training.hpp"

using namespace concord;
using namespace concord::test;

namespace {

/// Uses one layer three times, with others between.
struct Repeating : nn::Module {
  nn::Linear first{6, 12}, shared{12, 12}, second{12, 12}, third{12, 12}, last{12, 3};
  Value forward(Value x) override {
    x = shared(relu(first(x)));
    x = shared(tanh(second(x)));
    x = shared(tanh(third(x)));
    return last(x);
  }
  Children children() override {
    return {{"first", &first}, {"shared", &shared}, {"second", &second}, {"third", &third}, {"last", &last}};
  }
};

template <class Loss>
MakeTrainer repeating_with(Loss loss) {
  return [loss](const DevicePtr& device, const TrainerOptions& options) {
    return Trainer{std::make_shared<Repeating>(), loss, optim::Sgd{.lr = 0.05, .momentum = 0.9}, device, options};
  };
}

Trainer repeating(const DevicePtr& device, const TrainerOptions& options) {
  return repeating_with(loss::cross_entropy)(device, options);
}

/// Two terms, which are joined by weights of their own.
Value two_terms(Value scores, Value labels) {
  const loss::CrossEntropy weighted{.weights = {1, 3, 0.5F}, .ignore_index = -100};
  return weighted(scores, labels) + mean(scores * scores) * 0.01F;
}

constexpr double kMargin = 2e-5;

}  // namespace

TEST_CASE("a layer that three stages use is trained as on one device", "[train][collective][pipeline]") {
  const Dataset data = small_data(101), test = small_data(40, 1);
  const FitOptions fit{.epochs = 2, .batch = 8, .validate = std::make_shared<Dataset>(test)};
  for (const DevicePtr& device : devices()) {
    for (const Precision precision : {Precision::fp32, Precision::fp16}) {
      const TrainerOptions options{.seed = 4,
                                   .clip = {.norm = 0.5},
                                   .groups = {{.match = optim::named("shared.*"), .rate_factor = 0.5}},
                                   .ema_decay = 0.9,
                                   .precision = precision};
      const Result one = on_one(device, 4, options, data, fit, repeating);
      for (const int stages : {2, 3, 4, 5}) {
        INFO(device->info().id << ", " << stages << " stages, " << name_of(precision));
        const Result staged = in_stages(device, {stages, 4}, options, data, fit, repeating);
        CHECK(staged.steps == one.steps);
        check_close(one, staged, precision == Precision::fp32 ? kMargin : 2e-3);
      }
    }
  }
}

TEST_CASE("a table that the first and the last stage use is trained as on one device",
          "[train][collective][pipeline]") {
  const Dataset data = token_data(20, 16, 20);
  const MakeTrainer make = trainer_of("gpt_tiny:depth=3,length=16", {.classes = 20}, optim::Sgd{.lr = 0.05});
  for (const DevicePtr& device : devices()) {
    for (const int stages : {2, 4}) {
      INFO(stages << " stages on " << device->info().id);
      const FitOptions fit{.epochs = 2, .batch = 2, .validate = std::make_shared<Dataset>(data)};
      const TrainerOptions options{.seed = 3, .clip = {.norm = 0.5}, .ema_decay = stages == 2 ? 0.9 : 0};
      check_close(on_one(device, 4, options, data, fit, make), in_stages(device, {stages, 4}, options, data, fit, make),
                  kMargin);
    }
  }
}

TEST_CASE("shared gradients of several terms of a loss join", "[train][collective][pipeline]") {
  Dataset data = small_data(64);
  for (std::size_t i = 8; i < 16; ++i) data.labels.values<std::int32_t>()[i] = -100;  // a whole batch
  const FitOptions fit{.epochs = 2, .batch = 8, .shuffle = false};
  const MakeTrainer make = repeating_with(two_terms);
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    check_close(on_one(device, 3, {.seed = 4}, data, fit, make),
                in_stages(device, {4, 3}, {.seed = 4}, data, fit, make), kMargin);
  }
}

TEST_CASE("a frozen layer that several stages use has no gradient to send", "[train][collective][pipeline]") {
  const Dataset data = small_data(101);
  const FitOptions fit{.epochs = 2, .batch = 8};
  const TrainerOptions options{
      .seed = 4, .clip = {.norm = 0.5}, .groups = {{.match = optim::named("shared.*"), .frozen = true}}};
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    check_equal(on_one(device, 4, options, data, fit, repeating),
                in_stages(device, {4, 4}, options, data, fit, repeating));
  }
}

TEST_CASE("a checkpoint with shared parameters continues on other stages", "[train][collective][pipeline]") {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder / "stages.ckpt";
  const Dataset data = small_data(101);
  const DevicePtr& device = devices()[0];
  const FitOptions whole{.epochs = 3, .batch = 8};
  const TrainerOptions options{.seed = 4, .ema_decay = 0.9};
  const Result undisturbed = on_one(device, 4, options, data, whole, repeating);
  const MakeTrainer resumed = resuming(repeating, file);
  const FitOptions first{.epochs = 3, .batch = 8, .checkpoint = file, .max_steps = 17};
  const Result stopped = in_stages(device, {4, 4}, options, data, first, repeating);
  CHECK(stopped.steps == 17);
  const auto check = [&](Result result) {
    CHECK(result.steps == undisturbed.steps);
    result.losses = undisturbed.losses;  // of other epochs
    check_close(undisturbed, result, kMargin);
  };
  check(on_one(device, 4, options, data, whole, resumed));
  check(in_stages(device, {2, 4}, options, data, whole, resumed));
  check(in_stages(device, {4, 4}, options, data, whole, resumed));
}

TEST_CASE("shared parameters keep their values when a value is not finite", "[train][collective][pipeline]") {
  const Dataset good = small_data(64);
  Dataset bad = small_data(64);
  bad.features.values<float>()[6 * 40] = NAN;  // of the second update
  const DevicePtr& device = devices()[0];
  const TemporaryFolder folder;
  const Result before =
      in_stages(device, {4, 4}, {.seed = 4}, good, {.batch = 8, .shuffle = false, .max_steps = 4}, repeating);
  const auto errors = on_ranks(4, [&](const GroupPtr& group) {
    Trainer trainer = repeating(Device::open(device->info().id), {.seed = 4, .group = group, .pipeline = {4, 4}});
    try {
      trainer.fit(bad, {.batch = 8, .shuffle = false});
    } catch (const NonFinite&) {
      trainer.save(folder / "weights.safetensors");
      throw;
    }
  });
  for (const std::string& error : errors) CHECK_THAT(error, contains("the update of 4 batches from step 5"));
  Result kept = before;
  kept.weights = io::read_safetensors(folder / "weights.safetensors").tensors;
  check_equal(before, kept);
}

TEST_CASE("activations and their gradients cross a cut for each batch, and shared parameters once an update",
          "[train][collective][pipeline]") {
  const Dataset data = token_data(32, 16, 20);
  const MakeTrainer make = trainer_of("gpt_tiny:depth=3,length=16", {.classes = 20}, optim::Sgd{.lr = 0.05});
  constexpr std::size_t kBatches = 16, kActivations = 2 * 16 * 128 * sizeof(float), kTable = 20 * 128 * sizeof(float);
  for (const DevicePtr& device : devices()) {
    for (const int micro : {4, 8}) {
      for (const int stages : {2, 3}) {
        INFO(device->info().id << ", " << stages << " stages, " << micro << " batches an update");
        std::vector<std::map<int, std::size_t>> sent(static_cast<std::size_t>(stages)), expected(sent);
        const auto errors = on_ranks(stages, [&](const GroupPtr& group) {
          const auto counting = std::make_shared<CountingGroup>(group);
          // Nothing reads the averages, so they do not travel.
          const TrainerOptions options{.seed = 3, .ema_decay = 0.9, .group = counting, .pipeline = {stages, micro}};
          Trainer trainer = make(Device::open(device->info().id), options);
          trainer.fit(data, {.epochs = 1, .batch = 2});
          sent[static_cast<std::size_t>(group->rank())] = counting->sent();
        });
        REQUIRE(errors == std::vector<std::string>(sent.size()));
        const std::size_t updates = kBatches / static_cast<std::size_t>(micro);
        for (int stage = 0; stage + 1 < stages; ++stage) {
          expected[static_cast<std::size_t>(stage)][stage + 1] += kBatches * kActivations;
          expected[static_cast<std::size_t>(stage) + 1][stage] += kBatches * kActivations;
        }
        expected.front()[stages - 1] += updates * kTable;
        expected.back()[0] += updates * kTable;
        CHECK(sent == expected);
      }
    }
  }
}

TEST_CASE("the plan of the stages knows what a shared parameter costs", "[train][pipeline]") {
  Graph graph;
  constexpr std::int64_t kWidth = 64;
  constexpr std::size_t kBytes = 64 * 64 * 4;
  const auto parameter = [&](const std::string& name, std::int64_t columns = 64) {
    const TensorSpec spec{DType::f32, Shape{kWidth, columns}};
    return graph.variable(
        std::make_shared<Variable>(name, spec, Initializer{}, true, Tensor{}, VariableRole::parameter));
  };
  const Value table = parameter("table", 4 * kWidth);  // as four of the others
  Value x = matmul(graph.input("x", {DType::f32, Shape{1, kWidth}}), parameter("entry"));
  x = slice(matmul(x, table), 1, 0, kWidth);
  for (int i = 0; i < 8; ++i) x = matmul(x, parameter(fmt::format("w{}", i)));
  const std::vector<Value> loss{mean(matmul(x, table))};
  static_cast<void>(optim::minimize(loss[0], optim::Sgd{.lr = 0.1}, {.accumulate = 4}));
  const auto second_begins = [&](std::vector<std::size_t> memory) {
    return train::StagePlan(graph, loss, memory).first_parameters()[1];
  };
  const auto with_room_for = [](std::size_t parameters) { return parameters * kBytes * 10 / 8; };
  // Its gradient does not cross the cut for each batch: else the cut would lie before its first use.
  CHECK(second_begins({0, 0}) != "table");
  // Beside the table and its gradient, the last stage has room for two layers and theirs.
  CHECK(second_begins({0, with_room_for(2 * 4 + 2 * 2 + 1)}) == "w6");
  // The first one takes the gradient of the last, beside the table and its own. The entry and one layer are left.
  CHECK(second_begins({with_room_for(3 * 4 + 2 * 2 + 1), 0}) == "w1");
}
