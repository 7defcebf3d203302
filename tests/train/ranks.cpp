// Training on several ranks has the bits of accumulated batches on one device.
#include <algorithm>
#include <map>

#include "collective/rank_threads.hpp"
#include "concord/train/trainer.hpp"
#include "files.hpp"
#include "train/small_training.hpp"
#include "train/training_result.hpp"

using namespace concord;
using namespace concord::test;
using collective::GroupPtr;

namespace {

/// What a training leaves behind.
using MakeTrainer = std::function<Trainer(const DevicePtr& device, const TrainerOptions& options)>;

Trainer dropout_trainer(const DevicePtr& device, const TrainerOptions& options) {
  return Trainer{small_net(), loss::cross_entropy, optim::Adam{.lr = 0.01}, device, options};
}

TrainingResult on_one(const DevicePtr& device, int accumulate, TrainerOptions options, const Samples& data,
                      const FitOptions& fit, const MakeTrainer& make) {
  options.accumulate = accumulate;
  Trainer trainer = make(device, options);
  const History history = trainer.fit(data, fit);
  return without_statistics(result_of(trainer, history));
}

/// Of each rank.
std::vector<TrainingResult> on_several(const DevicePtr& device, int size, const TrainerOptions& options,
                                       const Samples& data, const FitOptions& fit, const MakeTrainer& make) {
  std::vector<TrainingResult> results(static_cast<std::size_t>(size));
  const auto errors = on_ranks(size, [&](const GroupPtr& group) {
    TrainerOptions own = options;
    own.group = group;
    Trainer trainer = make(Device::open(device->info().id), own);
    const History history = trainer.fit(data, fit);
    results[static_cast<std::size_t>(group->rank())] = without_statistics(result_of(trainer, history));
  });
  CHECK(errors == std::vector<std::string>(static_cast<std::size_t>(size)));
  return results;
}

void check_equal(const TrainingResult& one, const std::vector<TrainingResult>& several) {
  for (std::size_t rank = 0; rank < several.size(); ++rank) {
    INFO("rank " << rank);
    check_equal(one, several[rank]);
  }
}

}  // namespace

TEST_CASE("ranks have the bits of accumulated batches", "[train][collective]") {
  // 12 full batches and a shorter one: with 2 ranks the last update has one batch, with 3 and 4 too.
  const Dataset data = small_data(101), test = small_data(40, 1);
  const FitOptions fit{.epochs = 2, .batch = 8, .validate = std::make_shared<Dataset>(test)};
  for (const DevicePtr& device : devices()) {
    for (const int size : {2, 3, 4}) {
      INFO(device->info().id << ", " << size << " ranks");
      const TrainerOptions options{.seed = 4, .clip = {.norm = 0.5}, .ema_decay = 0.9};
      const TrainingResult one = on_one(device, size, options, data, fit, dropout_trainer);
      check_equal(one, on_several(device, size, options, data, fit, dropout_trainer));
    }
  }
}

TEST_CASE("ranks with streamed data, batch norm and weighted losses have the same bits", "[train][collective]") {
  Dataset images = data::synthetic(Shape{1, 6, 6}, 3, 50, 2);
  // The second batch of rank 1 has ignored labels only.
  for (std::size_t i = 24; i < 32; ++i) images.labels.values<std::int32_t>()[i] = -100;
  const FitOptions fit{.epochs = 2, .batch = 8, .shuffle = false};
  const MakeTrainer make = [](const DevicePtr& device, const TrainerOptions& options) {
    const loss::CrossEntropy weighted{.weights = {1, 3, 0.5F}, .ignore_index = -100};
    return Trainer{image_net(), weighted, optim::Sgd{.lr = 0.1, .momentum = 0.9}, device, options};
  };
  for (const DevicePtr& device : devices()) {
    for (const double resident : {0.4, 0.0}) {
      INFO(device->info().id << ", resident part " << resident);
      const TrainerOptions options{.seed = 4, .resident_fraction = resident};
      const TrainingResult one = on_one(device, 2, options, images, fit, make);
      check_equal(one, on_several(device, 2, options, images, fit, make));
    }
  }
}

TEST_CASE("ranks that accumulate agree, and have the sums of one device up to rounding", "[train][collective]") {
  const Dataset data = small_data(101);
  const FitOptions fit{.epochs = 2, .batch = 8};
  const DevicePtr& device = devices()[0];
  const TrainingResult one = on_one(device, 4, {.seed = 4}, data, fit, dropout_trainer);
  const std::vector<TrainingResult> two =
      on_several(device, 2, {.seed = 4, .accumulate = 2}, data, fit, dropout_trainer);
  check_equal(two[0], {two[1]});
  CHECK(two[0].steps == one.steps);
  for (std::size_t i = 0; i < one.losses.size(); ++i) CHECK(two[0].losses[i] == Approx(one.losses[i]).epsilon(1e-5));
}

TEST_CASE("gradients travel in 16 bits, with the same bits by each transport", "[train][collective]") {
  const Dataset data = small_data(101);
  const FitOptions fit{.epochs = 2, .batch = 8};
  const DevicePtr& device = devices()[0];
  const TrainingResult exact = on_one(device, 2, {.seed = 4}, data, fit, dropout_trainer);
  for (const auto& [precision, bound] : {std::pair(Precision::bf16, 0.01), std::pair(Precision::fp16, 0.001)}) {
    std::optional<TrainingResult> first;
    for (const Transport transport : transports()) {
      std::vector<TrainingResult> results(2);
      const auto errors = on_ranks(
          2,
          [&, gradients = precision](const GroupPtr& group) {
            const TrainerOptions options{.seed = 4, .group = group, .gradients = gradients};
            Trainer trainer = dropout_trainer(Device::open(device->info().id), options);
            const History history = trainer.fit(data, fit);
            results[static_cast<std::size_t>(group->rank())] = result_of(trainer, history);
          },
          std::chrono::seconds(60), transport);
      REQUIRE(errors == std::vector<std::string>(2));
      if (!first) first = results[0];
      check_equal(*first, results);
    }
    CHECK_FALSE((first->weights == exact.weights));
    for (std::size_t i = 0; i < exact.losses.size(); ++i)
      CHECK(first->losses[i] == Approx(exact.losses[i]).epsilon(bound));
  }
  const auto refused = on_ranks(2, [&](const GroupPtr& group) {
    static_cast<void>(dropout_trainer(device, {.group = group, .gradients = Precision::tf32}));
  });
  for (const std::string& error : refused) CHECK_THAT(error, contains("in fp32, bf16 or fp16, not in tf32"));
}

TEST_CASE("a checkpoint of ranks continues on ranks and on one device", "[train][collective]") {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder / "ranks.ckpt";
  const Dataset data = small_data(101);
  const DevicePtr& device = devices()[0];
  const FitOptions whole{.epochs = 3, .batch = 8}, first{.epochs = 3, .batch = 8, .checkpoint = file, .max_steps = 17};
  const TrainingResult undisturbed = on_one(device, 2, {.seed = 4}, data, whole, dropout_trainer);
  const std::vector<TrainingResult> stopped = on_several(device, 2, {.seed = 4}, data, first, dropout_trainer);
  CHECK(stopped[0].steps == 17);
  const MakeTrainer resumed = [&](const DevicePtr& on, const TrainerOptions& options) {
    Trainer trainer = dropout_trainer(on, options);
    trainer.resume(file);
    return trainer;
  };
  const std::vector<TrainingResult> both = on_several(device, 2, {.seed = 4}, data, whole, resumed);
  const TrainingResult alone = on_one(device, 2, {.seed = 4}, data, whole, resumed);
  for (const TrainingResult& result : {both[0], both[1], alone}) {
    CHECK((result.weights == undisturbed.weights));
    CHECK(result.steps == undisturbed.steps);
  }
  // The other way round: one device stops, within an update and after it.
  FitOptions stops = first;
  for (const std::int64_t steps : {16, 17}) {
    stops.max_steps = steps;
    static_cast<void>(on_one(device, 2, {.seed = 4}, data, stops, dropout_trainer));
    if (steps == 17) {
      CHECK((on_several(device, 2, {.seed = 4}, data, whole, resumed)[1].weights == undisturbed.weights));
      continue;
    }
    const auto errors = on_ranks(2, [&](const GroupPtr& group) {
      static_cast<void>(resumed(Device::open(device->info().id), {.seed = 4, .group = group}));
    });
    for (const std::string& error : errors) CHECK_THAT(error, contains("between the 2 batches of an update"));
  }
}

TEST_CASE("a value that is not finite on one rank ends all, with the last good weights", "[train][collective]") {
  const Dataset good = small_data(64);
  Dataset bad = small_data(64);
  bad.features.values<float>()[6 * 40] = NAN;  // sample 40: batch 5, of rank 1
  const DevicePtr& device = devices()[0];
  const FitOptions two_updates{.batch = 8, .shuffle = false, .max_steps = 4};
  TrainingResult before = on_one(device, 2, {.seed = 4}, good, two_updates, dropout_trainer);
  before.weights.erase(optim::kOk);
  std::vector<TrainingResult> results(2);
  const auto errors = on_ranks(2, [&](const GroupPtr& group) {
    Trainer trainer = dropout_trainer(Device::open(device->info().id), {.seed = 4, .group = group});
    try {
      trainer.fit(bad, {.batch = 8, .shuffle = false});
    } catch (const NonFinite&) {
      results[static_cast<std::size_t>(group->rank())] = result_of(trainer, {});
      results[static_cast<std::size_t>(group->rank())].weights.erase(optim::kOk);
      throw;
    }
  });
  CHECK_THAT(errors[1], contains("step 5 (epoch 1, batch 5)") && contains("features"));
  CHECK_THAT(errors[0], contains("step 5 (epoch 1, batch 5)") && contains("rank 0"));
  for (const TrainingResult& result : results) {
    CHECK((result.weights == before.weights));
    CHECK(result.steps == 4);
  }
}

TEST_CASE("a rank on which nan_trace finds a value waits for nobody, and trains again", "[train][collective]") {
  const Dataset good = small_data(64);
  Dataset bad = small_data(64);
  bad.features.values<float>()[6 * 40] = NAN;  // of rank 1's third batch
  const TemporaryFolder folder;
  const auto errors = on_ranks(2, [&](const GroupPtr& group) {
    Trainer trainer = dropout_trainer(Device::open(devices()[0]->info().id), {.seed = 4, .group = group});
    try {
      trainer.fit(bad, {.batch = 8, .shuffle = false, .nan_trace = true});
    } catch (const NonFinite&) {
      if (group->rank() == 1) trainer.save_checkpoint(folder / "rank1.ckpt");  // does not wait for rank 0
      throw;
    }
  });
  CHECK_THAT(errors[1], contains("has a value that is not finite"));
  CHECK_FALSE(errors[0].empty());
  const auto refused = on_ranks(2, [&](const GroupPtr& group) {
    Trainer trainer = dropout_trainer(Device::open(devices()[0]->info().id), {.seed = 4, .group = group});
    try {
      trainer.fit(good, {.batch = 50});
    } catch (const ArgumentError&) {  // on all
    }
    trainer.fit(good, {.batch = 8});
    trainer.save_checkpoint(folder / "good.ckpt");
    if (group->rank() == 1 && !std::filesystem::exists(folder / "good.ckpt")) throw Error("it has not waited");
  });
  CHECK(refused == std::vector<std::string>(2));
}

TEST_CASE("a rank that stops, stops all at the same step", "[train][collective]") {
  const Dataset data = small_data(101);
  std::vector<std::int64_t> steps(2);
  const auto errors = on_ranks(2, [&](const GroupPtr& group) {
    Trainer trainer = dropout_trainer(Device::open(devices()[0]->info().id), {.seed = 4, .group = group});
    FitOptions fit{.epochs = 5, .batch = 8};
    if (group->rank() == 1) fit.stop = [&trainer] { return trainer.steps_done() >= 6; };
    trainer.fit(data, fit);
    steps[static_cast<std::size_t>(group->rank())] = trainer.steps_done();
  });
  CHECK(errors == std::vector<std::string>(2));
  CHECK(steps == std::vector<std::int64_t>{6, 6});
}

TEST_CASE("ranks that are not started alike are refused on all ranks", "[train][collective]") {
  using Change = std::function<void(int rank, TrainerOptions&, FitOptions&, Dataset&)>;
  const auto errors_of = [](const Change& change, double decay = 0) {
    return on_ranks(2, [&](const GroupPtr& group) {
      TrainerOptions options{.seed = 4, .group = group};
      FitOptions fit{.batch = 8};
      Dataset data = small_data(64);
      change(group->rank(), options, fit, data);
      Trainer trainer{small_net(), loss::cross_entropy, optim::AdamW{.lr = 0.01, .weight_decay = group->rank() * decay},
                      Device::open(devices()[0]->info().id), options};
      trainer.fit(data, fit);
    });
  };
  const auto check_all = [](const std::vector<std::string>& errors, const std::string& text) {
    for (const std::string& error : errors) CHECK_THAT(error, contains(text));
  };
  check_all(errors_of([](int rank, TrainerOptions& options, FitOptions&, Dataset&) { options.seed += rank; }),
            "the seeds of rank 0 and of rank 1 are not the same: 4 and 5");
  check_all(errors_of([](int rank, TrainerOptions&, FitOptions& fit, Dataset&) { fit.epochs += rank; }),
            "the numbers of epochs");
  check_all(errors_of([](int rank, TrainerOptions&, FitOptions&, Dataset& data) {
              data.features.values<float>()[0] += static_cast<float>(rank);
            }),
            "the samples of rank 0 and of rank 1");
  check_all(errors_of([](int, TrainerOptions&, FitOptions& fit, Dataset&) { fit.batch = 50; }),
            "too few for 2 devices");
  const std::string steps = "the networks, losses or optimizers, or their settings of rank 0 and of rank 1";
  check_all(errors_of([](int, TrainerOptions&, FitOptions&, Dataset&) {}, 0.01), steps);
  check_all(errors_of([](int rank, TrainerOptions& options, FitOptions&, Dataset&) { options.clip.norm = rank; }),
            steps);
  check_all(errors_of([](int rank, TrainerOptions& options, FitOptions&, Dataset&) {
              options.precision = rank == 0 ? Precision::fp32 : Precision::bf16;
            }),
            "the precisions");
  const std::string fits = "the schedules, validations or other options of the training";
  check_all(errors_of([](int rank, TrainerOptions&, FitOptions& fit, Dataset& data) {
              if (rank == 1) fit.validate = std::make_shared<Dataset>(data);
            }),
            fits);
  check_all(errors_of([](int rank, TrainerOptions&, FitOptions& fit, Dataset&) {
              if (rank == 1) fit.schedule = optim::schedule::cosine(10);
            }),
            fits);
}
