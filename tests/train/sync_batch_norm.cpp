// Batch norm over the batches of all ranks is that of one device with the whole batch.
#include <cmath>

#include "collective/rank_threads.hpp"
#include "concord/ops/all_reduce.hpp"
#include "concord/train/trainer.hpp"
#include "train/small_training.hpp"
#include "train/training_result.hpp"

using namespace concord;
using namespace concord::test;
using collective::GroupPtr;

namespace {

TrainingResult train(const std::string& device, const TrainerOptions& options, const Dataset& data,
                     const FitOptions& fit) {
  // Labels below 0 do not count.
  const loss::CrossEntropy weighted{.weights = {1, 3, 0.5F}, .ignore_index = -100};
  Trainer trainer{image_net(), weighted, optim::Sgd{.lr = 0.1, .momentum = 0.9}, Device::open(device), options};
  const History history = trainer.fit(data, fit);
  return result_of(trainer, history);
}

std::vector<TrainingResult> on_several(const std::string& device, int size, TrainerOptions options, const Dataset& data,
                                       const FitOptions& fit, Transport transport = Transport::host) {
  std::vector<TrainingResult> results(static_cast<std::size_t>(size));
  const auto errors = on_ranks(
      size,
      [&](const GroupPtr& group) {
        TrainerOptions own = options;
        own.group = group;
        results[static_cast<std::size_t>(group->rank())] = train(device, own, data, fit);
      },
      std::chrono::seconds(60), transport);
  REQUIRE(errors == std::vector<std::string>(results.size()));
  return results;
}

/// Of a mean far from 0, which a sum of squares would not survive.
Dataset images(std::int64_t samples) {
  Dataset data = data::synthetic(Shape{1, 6, 6}, 3, samples, 2);
  for (float& value : data.features.values<float>()) value += 3;
  return data;
}

void check_equal_weights(const TrainingResult& one, const TrainingResult& other) {
  for (const auto& [name, values] : one.weights) {
    INFO(name);
    if (name.find("running_") == std::string::npos) CHECK((other.weights.at(name) == values));
  }
}

}  // namespace

TEST_CASE("synchronised batch norm of ranks is batch norm of the whole batch", "[train][collective]") {
  for (const DevicePtr& device : devices()) {
    const std::string id = device->info().id;
    for (const int size : {2, 3}) {
      INFO(id << ", " << size << " ranks");
      const Dataset data = images(24 * size);
      const FitOptions whole{.epochs = 3, .batch = 8 * size}, part{.epochs = 3, .batch = 8};
      const TrainingResult one = train(id, {.seed = 4}, data, whole);
      const std::vector<TrainingResult> several =
          on_several(id, size, {.seed = 4, .sync_batch_norm = true}, data, part);
      for (const TrainingResult& rank : several) {
        check_close(one, rank, 2e-5);
        CHECK(rank.weights == several[0].weights);  // also the running statistics, bit for bit
      }
      const std::vector<TrainingResult> again = on_several(id, size, {.seed = 4, .sync_batch_norm = true}, data, part);
      CHECK(again[0].weights == several[0].weights);
      // Without it the statistics are each rank's own.
      const std::vector<TrainingResult> own = on_several(id, size, {.seed = 4}, data, part);
      CHECK(std::abs(own[0].losses.back() - one.losses.back()) > 1e-4);
    }
  }
}

TEST_CASE("a rank without a batch adds nothing to synchronised statistics", "[train][collective]") {
  // 36 samples: an update of two batches of 8, another, and one of rank 0's batch of 4 alone.
  const std::string id = devices()[0]->info().id;
  const Dataset data = images(36);
  const TrainingResult one = train(id, {.seed = 4}, data, {.epochs = 2, .batch = 16, .shuffle = false});
  const FitOptions part{.epochs = 2, .batch = 8, .shuffle = false};
  for (const Transport transport : transports()) {
    const std::vector<TrainingResult> two =
        on_several(id, 2, {.seed = 4, .sync_batch_norm = true}, data, part, transport);
    check_close(one, two[0], 2e-5);
    check_equal_weights(two[0], two[1]);
  }
}

TEST_CASE("synchronised batch norm with other weights of the loss on each rank", "[train][collective]") {
  const std::string id = devices()[0]->info().id;
  Dataset data = images(48);
  const auto labels = data.labels.values<std::int32_t>();
  for (std::size_t i = 1; i < 7; ++i) labels[i] = -100;    // most of rank 0's first batch
  for (std::size_t i = 24; i < 32; ++i) labels[i] = -100;  // all of rank 1's second batch
  const TrainingResult one = train(id, {.seed = 4}, data, {.epochs = 2, .batch = 16, .shuffle = false});
  const FitOptions part{.epochs = 2, .batch = 8, .shuffle = false};
  for (const TrainingResult& rank : on_several(id, 2, {.seed = 4, .sync_batch_norm = true}, data, part)) {
    check_close(one, rank, 2e-5);
  }
}

TEST_CASE("ranks with synchronised batch norm go on without a lost one", "[train][collective]") {
  const std::string id = devices()[0]->info().id;
  const Dataset data = images(96);
  const FitOptions fit{.epochs = 2, .batch = 8};
  const Transport transport = GENERATE(from_range(transports()));
  std::vector<TrainingResult> results(3);
  const auto errors = on_ranks(
      3,
      [&](const GroupPtr& group) {
        FitOptions own = fit;
        if (group->rank() == 2) {
          own.stop = [updates = 0]() mutable -> bool {
            if (++updates > 2) throw Error("this rank ends");
            return false;
          };
        }
        const TrainerOptions options{.seed = 4, .group = group, .sync_batch_norm = true, .min_ranks = 1};
        results[static_cast<std::size_t>(group->rank())] = train(id, options, data, own);
      },
      std::chrono::seconds(60), transport);
  CHECK(errors == std::vector<std::string>{"", "", "this rank ends"});
  CHECK(results[0].losses == results[1].losses);
  CHECK(std::isfinite(results[0].losses[0]));
  check_equal_weights(results[0], results[1]);
}

TEST_CASE("a sum over ranks in a network is that of one where there is one", "[train]") {
  class Summed final : public nn::Module {
   public:
    Value forward(Value x) override { return all_reduce(x); }
  };
  for (const DevicePtr& device : devices()) {
    Trainer plain{nn::Sequential{nn::Linear{6, 3}}, loss::cross_entropy, optim::Sgd{.lr = 0.1}, device, {.seed = 4}};
    Trainer summed{
        nn::Sequential{nn::Linear{6, 3}, Summed{}}, loss::cross_entropy, optim::Sgd{.lr = 0.1}, device, {.seed = 4}};
    const Dataset data = small_data(64);
    CHECK(plain.fit(data, {.batch = 16}).epochs[0].loss == summed.fit(data, {.batch = 16}).epochs[0].loss);
    CHECK(plain.evaluate(data).loss == summed.evaluate(data).loss);
  }
}

TEST_CASE("synchronised batch norm with accumulated batches, and in one process", "[train][collective]") {
  const std::string id = devices()[0]->info().id;
  const Dataset data = images(32);
  const FitOptions fit{.epochs = 2, .batch = 8, .shuffle = false};
  // Of 4 batches an update, those of the same turn share their statistics.
  const std::vector<TrainingResult> two =
      on_several(id, 2, {.seed = 4, .accumulate = 2, .sync_batch_norm = true}, data, fit);
  const TrainingResult one =
      train(id, {.seed = 4, .accumulate = 2}, data, {.epochs = 2, .batch = 16, .shuffle = false});
  check_close(one, two[0], 2e-5);
  CHECK(train(id, {.seed = 4, .sync_batch_norm = true}, data, fit).weights ==
        train(id, {.seed = 4}, data, fit).weights);
}

TEST_CASE("a pipeline has no synchronised batch norm", "[train][collective]") {
  const auto errors = on_ranks(2, [&](const GroupPtr& group) {
    TrainerOptions options{.seed = 4, .group = group, .pipeline = {2, 2}};
    options.sync_batch_norm = true;
    static_cast<void>(train(devices()[0]->info().id, options, images(32), {.batch = 8}));
  });
  for (const std::string& error : errors) CHECK_THAT(error, contains("sync_batch_norm"));
}
