// A batch that ranks of different speed split is one batch.
#include <numeric>

#include "collective/rank_threads.hpp"
#include "concord/train/ranks.hpp"
#include "concord/train/trainer.hpp"
#include "files.hpp"
#include "train/small_training.hpp"
#include "train/training_result.hpp"

using namespace concord;
using namespace concord::test;
using collective::GroupPtr;

namespace {

/// Up to rounding.
void check_same(const TrainingResult& one, const TrainingResult& other) {
  CHECK(other.steps == one.steps);
  check_close(one, other, 2e-5);
}

nn::Sequential plain_net() { return nn::Sequential{nn::Linear{6, 16}, nn::ReLU{}, nn::Linear{16, 3}}; }

TrainingResult trained(const std::string& device, const TrainerOptions& options, const Dataset& data,
                       const FitOptions& fit, const std::filesystem::path& resumed = {}, int fits = 1) {
  const loss::CrossEntropy weighted{.weights = {1, 3, 0.5F}, .ignore_index = -100};
  Trainer trainer{plain_net(), weighted, optim::Adam{.lr = 0.01}, Device::open(device), options};
  if (!resumed.empty()) trainer.resume(resumed);
  for (int i = 1; i < fits; ++i) static_cast<void>(trainer.fit(data, fit));
  const History history = trainer.fit(data, fit);
  return result_of(trainer, history);
}

std::vector<TrainingResult> on_several(const std::vector<std::string>& devices, const TrainerOptions& options,
                                       const Dataset& data, const FitOptions& fit) {
  std::vector<TrainingResult> results(devices.size());
  const auto errors = on_ranks(static_cast<int>(devices.size()), [&](const GroupPtr& group) {
    TrainerOptions own = options;
    own.group = group;
    const auto rank = static_cast<std::size_t>(group->rank());
    results[rank] = trained(devices[rank], own, data, fit);
  });
  REQUIRE(errors == std::vector<std::string>(devices.size()));
  return results;
}

Dataset data_with_ignored_labels(std::int64_t samples) {
  Dataset data = small_data(samples);
  for (std::size_t i = 12; i < 16; ++i) data.labels.values<std::int32_t>()[i] = -100;
  return data;
}

/// The samples of a full batch for each of the ranks.
std::vector<std::size_t> parts(const std::vector<double>& shares, std::int64_t samples) {
  train::Ranks ranks(collective::make_groups_of_threads(static_cast<int>(shares.size()), std::chrono::seconds(1))[0],
                     1);
  ranks.set_shares(shares);
  std::vector<std::size_t> sizes;
  for (std::size_t rank = 0; rank < shares.size(); ++rank) {
    sizes.push_back(ranks.samples_of(samples, static_cast<int>(rank)).size());
  }
  return sizes;
}

}  // namespace

TEST_CASE("shares divide a batch in their proportions", "[train][collective]") {
  CHECK(parts({3, 1}, 16) == std::vector<std::size_t>{12, 4});
  CHECK(parts({1, 1, 1}, 10) == std::vector<std::size_t>{3, 4, 3});
  CHECK(parts({930.5, 71.25}, 128) == std::vector<std::size_t>{119, 9});
  CHECK(parts({3, 1}, 1) == std::vector<std::size_t>{1, 0});
  for (const std::int64_t samples : {0, 1, 7, 1000}) {
    const std::vector<std::size_t> sizes = parts({0.1, 5, 2.5, 1e-3}, samples);
    CHECK(std::accumulate(sizes.begin(), sizes.end(), std::size_t{0}) == static_cast<std::size_t>(samples));
  }
}

TEST_CASE("ranks that split a batch have the result of the whole batch", "[train][collective]") {
  for (const DevicePtr& device : devices()) {
    const std::string id = device->info().id;
    // 6 batches of 16 and one of 5; 6 and one of 1, which rank 1 has no part of.
    for (const std::int64_t samples : {101, 97}) {
      INFO(id << ", " << samples << " samples");
      const Dataset data = data_with_ignored_labels(samples);
      const FitOptions whole{.epochs = 2, .batch = 16}, part{.epochs = 2, .batch = 8};
      const TrainingResult one = trained(id, {.seed = 4}, data, whole);
      const std::vector<TrainingResult> two =
          on_several({id, id}, {.seed = 4, .split = {.shares = {3, 1}}}, data, part);
      check_same(one, two[0]);
      CHECK(two[0].weights == two[1].weights);
      CHECK(on_several({id, id}, {.seed = 4, .split = {.shares = {3, 1}}}, data, part)[0].weights == two[0].weights);
    }
  }
}

TEST_CASE("ranks that split batches accumulate, and split by speed", "[train][collective]") {
  const std::string id = devices()[0]->info().id;
  const Dataset data = data_with_ignored_labels(101);
  const FitOptions whole{.epochs = 2, .batch = 16}, part{.epochs = 2, .batch = 8};
  const TrainingResult one = trained(id, {.seed = 4, .accumulate = 2}, data, whole);
  check_same(one, on_several({id, id}, {.seed = 4, .accumulate = 2, .split = {.shares = {1, 2}}}, data, part)[0]);
  std::vector<std::string> ids;  // of different speed
  for (const DevicePtr& device : devices()) ids.push_back(device->info().id);
  if (ids.size() == 1) ids.push_back(id);
  const FitOptions of_all{.epochs = 2, .batch = 8 * static_cast<std::int64_t>(ids.size())};
  const std::vector<TrainingResult> mixed = on_several(ids, {.seed = 4, .split = {.by_speed = true}}, data, part);
  check_same(trained(id, {.seed = 4}, data, of_all), mixed[0]);
  CHECK(mixed[0].weights == mixed[1].weights);
}

TEST_CASE("a checkpoint of a split training continues with another split and on one device", "[train][collective]") {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder / "split.ckpt";
  const std::string id = devices()[0]->info().id;
  const Dataset data = data_with_ignored_labels(101);
  const FitOptions whole{.epochs = 2, .batch = 16};
  const TrainingResult one = trained(id, {.seed = 4}, data, whole);
  static_cast<void>(on_several({id, id}, {.seed = 4, .split = {.shares = {3, 1}}}, data,
                               {.epochs = 2, .batch = 8, .checkpoint = file, .max_steps = 3}));
  check_same(one, trained(id, {.seed = 4}, data, whole, file));
  std::vector<TrainingResult> resumed(2);
  const auto errors = on_ranks(2, [&](const GroupPtr& group) {
    resumed[static_cast<std::size_t>(group->rank())] =
        trained(id, {.seed = 4, .group = group, .split = {.shares = {1, 4}}}, data, {.epochs = 2, .batch = 8}, file);
  });
  CHECK(errors == std::vector<std::string>(2));
  check_same(one, resumed[1]);
}

TEST_CASE("ranks that are left keep their proportions and the batch", "[train][collective]") {
  const std::string id = devices()[0]->info().id;
  const Dataset data = data_with_ignored_labels(101);
  const FitOptions part{.epochs = 3, .batch = 8};
  const TrainingResult one = trained(id, {.seed = 4}, data, {.epochs = 3, .batch = 24}, {}, 2);
  const TrainerOptions options{.seed = 4, .split = {.shares = {2, 1, 1}}, .min_ranks = 1};
  for (const int most : {2, 1}) {  // of ranks that are left: rank 0 and 2, or rank 0 alone
    std::vector<TrainingResult> results(3);
    const auto errors = on_ranks(3, [&](const GroupPtr& group) {
      FitOptions own_fit = part;
      TrainerOptions own = options;
      own.group = group;
      if (group->rank() > 0 && (group->rank() == 1 || most == 1)) {
        own_fit.stop = [updates = 0]() mutable -> bool {
          if (++updates > 7) throw Error("this rank ends");
          return false;
        };
      }
      results[static_cast<std::size_t>(group->rank())] = trained(id, own, data, own_fit, {}, 2);
    });
    CHECK(errors[1] == "this rank ends");
    CHECK(errors[0].empty());
    check_same(one, results[0]);
    if (most == 2) check_same(one, results[2]);
  }
}

TEST_CASE("a bad value names the part of a batch that has it", "[train][collective]") {
  Dataset bad = small_data(64);
  bad.features.values<float>()[6 * 14] = NAN;  // of rank 1's part of the first batch
  const auto errors = on_ranks(2, [&](const GroupPtr& group) {
    const TrainerOptions options{.seed = 4, .group = group, .split = {.shares = {3, 1}}};
    static_cast<void>(trained(devices()[0]->info().id, options, bad, {.batch = 8, .shuffle = false}));
  });
  CHECK_THAT(errors[0], contains("batch 1) is not finite") && contains("on rank 0"));
  CHECK_THAT(errors[1], contains("the first such value is") && contains("features"));
}

TEST_CASE("splits that are none are refused", "[train][collective]") {
  const auto errors_of = [](const BatchSplit& split, std::int64_t batch = 8, bool one_differs = false) {
    return on_ranks(2, [&](const GroupPtr& group) {
      TrainerOptions options{.seed = 4, .group = group, .split = split};
      if (one_differs && group->rank() == 1) options.split = {.by_speed = true};
      static_cast<void>(trained(devices()[0]->info().id, options, small_data(64), {.batch = batch}));
    });
  };
  const auto check_all = [](const std::vector<std::string>& errors, const std::string& text) {
    for (const std::string& error : errors) CHECK_THAT(error, contains(text));
  };
  check_all(errors_of({.shares = {1, 2, 3}}), "a share for each of the 2 devices, got 3");
  check_all(errors_of({.shares = {1, 0}}), "numbers above 0, got 0");
  check_all(errors_of({.shares = {1, 1}, .by_speed = true}), "not by both");
  check_all(errors_of({.shares = {1000, 1}}), "has none for rank 1");
  check_all(errors_of({.shares = {1, 1}}, 8, true), "the splits of batches");
}
