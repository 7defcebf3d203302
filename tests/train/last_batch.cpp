// FitOptions::last_batch: what becomes of the samples that are left.
#include "concord/train/trainer.hpp"
#include "files.hpp"
#include "train/small_training.hpp"

using namespace concord;
using namespace concord::test;

namespace {

nn::Sequential normalised_net() {
  return nn::Sequential{nn::Linear{6, 8}, nn::BatchNorm1d{8}, nn::ReLU{}, nn::Linear{8, 3}};
}

Trainer trainer_on(const DevicePtr& device, double resident = 0.4) {
  return Trainer{normalised_net(), loss::cross_entropy, optim::Adam{}, device, {.resident_fraction = resident}};
}

}  // namespace

TEST_CASE("a last batch that the network does not take is told, and may be dropped or merged", "[train]") {
  const Dataset data = small_data(33);
  for (const DevicePtr& device : devices()) {
    for (const double resident : {0.4, 0.0}) {
      INFO(device->info().id << ", resident " << resident);
      Trainer kept = trainer_on(device, resident);
      const std::string message = message_of<ShapeError>([&] { kept.fit(data, {.batch = 16}); });
      INFO(message);
      for (const char* part : {"last batch", "1 of 33 samples", "batches of 16", "more than one value per channel",
                               "FitOptions::last_batch", "--last-batch"}) {
        CHECK(contains(message, part));
      }
      CHECK(kept.variables()->names().empty());

      FitOptions options{.epochs = 2, .batch = 16, .last_batch = LastBatch::drop};
      Trainer dropped = trainer_on(device, resident);
      CHECK(dropped.fit(data, options).epochs[1].steps == 4);
      options.last_batch = LastBatch::merge;
      Trainer merged = trainer_on(device, resident);
      CHECK(merged.fit(data, options).epochs[1].steps == 4);
      CHECK(bytes_of(dropped) != bytes_of(merged));
      CHECK(merged.evaluate(data, {.batch = 16}).samples == 33);  // one sample alone is no matter there
    }
  }
}

TEST_CASE("a merged last batch has the samples of both", "[train]") {
  const Dataset data = small_data(11);
  for (const DevicePtr& device : devices()) {
    for (const double resident : {0.4, 0.0}) {
      INFO(device->info().id << ", resident " << resident);
      const auto make = [&] {
        return Trainer{nn::Sequential{nn::Linear{6, 3}},
                       loss::cross_entropy,
                       optim::Sgd{.lr = 0},
                       device,
                       {.seed = 1, .resident_fraction = resident}};
      };
      Trainer trainer = make();
      FitOptions options{.batch = 4, .shuffle = false, .last_batch = LastBatch::merge};
      const History merged = trainer.fit(data, options);
      CHECK(merged.epochs[0].steps == 2);  // 4 and 7
      CHECK(merged.epochs[0].loss == Approx(trainer.evaluate(data).loss).epsilon(1e-5));
      options.last_batch = LastBatch::drop;
      const double first_eight = trainer.fit(data, options).epochs[0].loss;
      CHECK(first_eight == Approx(trainer.evaluate(data::slice(data, 0, 8)).loss).epsilon(1e-5));
      options.batch = 8;
      options.last_batch = LastBatch::merge;
      Trainer single = make();
      CHECK(single.fit(data, options).epochs[0].steps == 1);  // 11 at once
    }
  }
}

TEST_CASE("merged and dropped batches go on after a stop to the same bits", "[train]") {
  const Dataset data = small_data(33);
  const TemporaryFolder folder;
  const auto path = folder / "run.safetensors";
  for (const LastBatch last : {LastBatch::drop, LastBatch::merge}) {
    for (const DevicePtr& device : devices()) {
      INFO(device->info().id);
      FitOptions options{.epochs = 3, .batch = 8, .last_batch = last};
      Trainer whole = trainer_on(device);
      whole.fit(data, options);
      FitOptions part = options;
      part.max_steps = 7;
      part.checkpoint = path;
      Trainer stopped = trainer_on(device), resumed = trainer_on(device);
      stopped.fit(data, part);
      resumed.resume(path);
      resumed.fit(data, options);
      CHECK(bytes_of(resumed) == bytes_of(whole));
    }
  }
}
