// Trainings that go on without ranks that are lost. With the ranks as threads; tests/cli/survivors.cpp kills processes.
#include <atomic>
#include <filesystem>
#include <map>

#include "collective/rank_threads.hpp"
#include "concord/core/error.hpp"
#include "concord/train/trainer.hpp"
#include "files.hpp"
#include "train/small_training.hpp"
#include "train/training_result.hpp"

using namespace concord;
using namespace concord::test;
using collective::GroupPtr;

namespace {

const TrainerOptions kOptions{.seed = 4, .clip = {.norm = 0.5}, .ema_decay = 0.9, .min_ranks = 1};

TrainingResult undisturbed(int accumulate, const Samples& data, const FitOptions& fit,
                           TrainerOptions options = kOptions) {
  options.accumulate = accumulate;
  Trainer trainer = small_trainer(devices()[0], options);
  const History history = trainer.fit(data, fit);
  return result_of(trainer, history);
}

using Fit = std::function<History(Trainer& trainer, int rank)>;

/// Of each rank that ended without an error; `errors` gets those of the others.
std::vector<TrainingResult> on_several(int size, const Fit& fit, std::vector<std::string>& errors,
                                       const TrainerOptions& options = kOptions,
                                       Transport transport = Transport::host) {
  std::vector<TrainingResult> results(static_cast<std::size_t>(size));
  const auto work = [&](const GroupPtr& group) {
    TrainerOptions own = options;
    own.group = group;
    Trainer trainer = small_trainer(Device::open(devices()[0]->info().id), own);
    const int rank = group->rank();
    const History history = fit(trainer, rank);
    results[static_cast<std::size_t>(rank)] = result_of(trainer, history);
  };
  errors = on_ranks(size, work, std::chrono::seconds(60), transport);
  return results;
}

/// Ends a rank before the step after `steps` steps.
FitOptions ends_at(FitOptions fit, Trainer& trainer, std::int64_t steps) {
  fit.stop = [&trainer, steps]() -> bool {
    if (trainer.steps_done() >= steps) throw Error("this rank ends");
    return false;
  };
  return fit;
}

/// A data set that cannot be read any more after some samples.
class EndingSamples final : public Samples {
 public:
  EndingSamples(const Dataset& data, int reads) : data_(data), reads_(reads) { name = data.name; }
  [[nodiscard]] std::int64_t size() const override { return data_.size(); }
  [[nodiscard]] std::vector<ColumnSpec> feature_specs() const override { return data_.feature_specs(); }
  [[nodiscard]] std::vector<ColumnSpec> label_specs() const override { return data_.label_specs(); }
  void read(std::int64_t row, std::span<const std::span<std::byte>> columns,
            const SampleRandom& random) const override {
    if (--reads_ < 0) throw IoError("the disk is gone");
    data_.read(row, columns, random);
  }

 private:
  const Dataset& data_;
  mutable std::atomic<int> reads_;
};

void check_losses(const TrainingResult& result, const TrainingResult& expected) {
  CHECK(result.steps == expected.steps);
  REQUIRE(result.losses.size() == expected.losses.size());
  for (std::size_t i = 0; i < result.losses.size(); ++i) {
    CHECK(result.losses[i] == Approx(expected.losses[i]).epsilon(1e-5));
  }
}

}  // namespace

TEST_CASE("the last rank goes on, with the bits of a training that lost none", "[train][collective]") {
  const Dataset data = small_data(101), test = small_data(40, 1);
  const FitOptions fit{.epochs = 3, .batch = 8, .validate = std::make_shared<Dataset>(test)};
  const TrainingResult expected = undisturbed(2, data, fit);
  const Transport transport = GENERATE(from_range(transports()));
  for (const int lost : {0, 1}) {
    for (const std::int64_t steps : {0, 6, 13, 24}) {  // of 13 in an epoch
      INFO("rank " << lost << " ends after " << steps << " steps");
      std::vector<std::string> errors;
      const auto results = on_several(
          2,
          [&](Trainer& trainer, int rank) {
            return trainer.fit(data, rank == lost ? ends_at(fit, trainer, steps) : fit);
          },
          errors, kOptions, transport);
      const auto left = static_cast<std::size_t>(1 - lost);
      CHECK(errors[left] == "");
      CHECK(results[left].steps == expected.steps);
      CHECK(results[left].losses == expected.losses);
      CHECK((results[left].weights == expected.weights));
    }
  }
}

TEST_CASE("a rank is lost within an update, or in a validation", "[train][collective]") {
  const Dataset data = small_data(101), test = small_data(40, 1);
  TrainerOptions streamed = kOptions;
  streamed.resident_fraction = 0;
  const FitOptions fit{.epochs = 3, .batch = 8, .validate = std::make_shared<Dataset>(test)};
  const TrainingResult expected = undisturbed(2, data, fit, streamed);
  const auto check = [&](const Fit& run) {
    std::vector<std::string> errors;
    const auto results = on_several(2, run, errors, streamed);
    CHECK_THAT(errors[1], contains("the disk is gone"));
    CHECK(errors[0] == "");
    CHECK(results[0].losses == expected.losses);
    CHECK((results[0].weights == expected.weights));
  };
  check([&](Trainer& trainer, int rank) {
    return rank == 0 ? trainer.fit(data, fit) : trainer.fit(EndingSamples(data, 80), fit);
  });
  check([&](Trainer& trainer, int rank) {
    FitOptions own = fit;
    if (rank == 1) own.validate = std::make_shared<EndingSamples>(test, 60);
    return trainer.fit(data, own);
  });
}

TEST_CASE("a rank is lost before the first step", "[train][collective]") {
  const Dataset data = small_data(101);
  const Transport transport = GENERATE(from_range(transports()));
  const FitOptions fit{.epochs = 2, .batch = 8};
  const TrainingResult expected = undisturbed(2, data, fit);
  for (const int reads : {0, 3}) {  // before the ranks compare their data, and while programs are made
    for (const int lost : {0, 1}) {
      INFO("rank " << lost << " ends after " << reads << " samples");
      TrainerOptions streamed = kOptions;
      streamed.resident_fraction = 0;
      std::vector<std::string> errors;
      const auto results = on_several(
          2,
          [&](Trainer& trainer, int rank) {
            return rank == lost ? trainer.fit(EndingSamples(data, reads), fit) : trainer.fit(data, fit);
          },
          errors, streamed, transport);
      const auto left = static_cast<std::size_t>(1 - lost);
      CHECK_THAT(errors[1 - left], contains("the disk is gone"));
      CHECK(errors[left] == "");
      CHECK(results[left].losses == expected.losses);
      CHECK((results[left].weights == expected.weights));
    }
  }
}

TEST_CASE("if the first rank is lost while it writes a file, the next one writes it", "[train][collective]") {
  const Dataset data = small_data(101);
  const Transport transport = GENERATE(from_range(transports()));
  const TemporaryFolder folder;
  const std::filesystem::path checkpoint = folder / "checkpoint", weights = folder / "weights.safetensors";
  std::vector<std::string> errors;
  on_several(
      2,
      [&](Trainer& trainer, int rank) {
        const History history = trainer.fit(data, {.epochs = 1, .batch = 8});
        if (rank == 0) throw Error("the first rank ends");
        trainer.save(weights);
        return history;
      },
      errors, kOptions, transport);
  CHECK(errors == std::vector<std::string>{"the first rank ends", ""});
  CHECK(std::filesystem::exists(weights));
  // In a fit, the last checkpoint.
  on_several(
      2,
      [&](Trainer& trainer, int rank) {
        return trainer.fit(
            data,
            {.epochs = 1, .batch = 8, .checkpoint = rank == 0 ? std::filesystem::path("/dev/full/c") : checkpoint});
      },
      errors, kOptions, transport);
  CHECK_THAT(errors[0], contains("/dev/full/c"));
  CHECK(errors[1].empty());
  CHECK(std::filesystem::exists(checkpoint));
}

TEST_CASE("a rank that fails and then writes its files disturbs no other", "[train][collective]") {
  const Dataset data = small_data(101);
  const Transport transport = GENERATE(from_range(transports()));
  const FitOptions fit{.epochs = 4, .batch = 8};
  const TrainingResult expected = undisturbed(2, data, fit);
  const TemporaryFolder folder;
  std::vector<std::string> errors;
  const auto results = on_several(
      2,
      [&](Trainer& trainer, int rank) {
        if (rank == 1) return trainer.fit(data, fit);
        FitOptions full = fit;
        full.checkpoint = "/dev/full/checkpoint";
        try {
          return trainer.fit(data, full);
        } catch (const IoError&) {  // as the command does
          trainer.save(folder / "weights.safetensors");
          trainer.save_checkpoint(folder / "checkpoint");
          throw;
        }
      },
      errors, kOptions, transport);
  CHECK_THAT(errors[0], contains("/dev/full/checkpoint"));
  CHECK(errors[1].empty());
  CHECK(results[1].losses == expected.losses);
  CHECK((results[1].weights == expected.weights));
  Trainer resumed = small_trainer(devices()[0], [] {
    TrainerOptions options = kOptions;
    options.accumulate = 2;
    return options;
  }());
  resumed.resume(folder / "checkpoint");
  CHECK(resumed.epochs_done() == 1);
}

TEST_CASE("three of four ranks and two of three go on, up to rounding", "[train][collective]") {
  const Dataset data = small_data(203);
  const FitOptions fit{.epochs = 3, .batch = 8};
  for (const int size : {3, 4}) {
    const TrainingResult expected = undisturbed(size, data, fit);
    std::vector<std::string> errors;
    const auto results = on_several(
        size,
        [&](Trainer& trainer, int rank) { return trainer.fit(data, rank == 1 ? ends_at(fit, trainer, 29) : fit); },
        errors);
    CHECK(errors[1] == "this rank ends");
    for (int rank = 0; rank < size; ++rank) {
      if (rank == 1) continue;
      INFO("rank " << rank << " of " << size);
      CHECK(errors[static_cast<std::size_t>(rank)].empty());
      check_losses(results[static_cast<std::size_t>(rank)], expected);
      CHECK((results[static_cast<std::size_t>(rank)].weights == results[0].weights));
    }
  }
}

TEST_CASE("ranks are lost one after the other", "[train][collective]") {
  const Dataset data = small_data(203);
  const FitOptions fit{.epochs = 3, .batch = 8};
  const TrainingResult expected = undisturbed(3, data, fit);
  const Transport transport = GENERATE(from_range(transports()));
  std::vector<std::string> errors;
  const auto results = on_several(
      3,
      [&](Trainer& trainer, int rank) {
        return trainer.fit(data, rank == 0 ? fit : ends_at(fit, trainer, rank == 1 ? 30 : 12));
      },
      errors, kOptions, transport);
  CHECK(errors == std::vector<std::string>{"", "this rank ends", "this rank ends"});
  check_losses(results[0], expected);
}

TEST_CASE("a training ends when fewer ranks are left than it needs", "[train][collective]") {
  const Dataset data = small_data(101);
  const FitOptions fit{.epochs = 3, .batch = 8};
  TrainerOptions options = kOptions;
  options.min_ranks = 2;
  std::vector<std::string> errors;
  static_cast<void>(on_several(
      2, [&](Trainer& trainer, int rank) { return trainer.fit(data, rank == 1 ? ends_at(fit, trainer, 6) : fit); },
      errors, options));
  CHECK_THAT(errors[0], contains("rank 1 (process") && contains("of 2 devices 1 are left, and the training needs 2"));
}
