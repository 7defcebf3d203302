// Early stopping over a stop in between: a training that goes on ends as one without a stop.
#include "concord/train/options.hpp"
#include "files.hpp"
#include "train/small_training.hpp"

using namespace concord;
using namespace concord::test;

namespace {

struct Listener {
  Listener() {
    set_log([this](LogLevel, std::string_view text) { messages += std::string(text) + "\n"; }, LogLevel::warning);
  }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  ~Listener() { set_log({}); }
  std::string messages;
};

Trainer new_trainer(const DevicePtr& device, double ema_decay) {
  return Trainer{nn::Sequential{nn::Linear{6, 16}, nn::BatchNorm1d{16}, nn::ReLU{}, nn::Linear{16, 3}},
                 loss::cross_entropy,
                 optim::Adam{.lr = 0.05},
                 device,
                 {.seed = 2, .ema_decay = ema_decay}};
}

/// What is learned makes the validation worse: its classes lie elsewhere.
FitOptions options_of(EarlyStopping early) {
  FitOptions options{.epochs = 30, .batch = 20};
  options.validate = small_data(60, 1);
  options.early_stopping = std::move(early);
  return options;
}

struct End {
  History::End how;
  std::int64_t best_epoch, epochs;
  std::string weights;
  friend bool operator==(const End&, const End&) = default;
};

End end_of(const Trainer& trainer, const History& history) {
  const TemporaryFolder folder;
  trainer.save(folder / "net");
  return {history.end, history.best_epoch, trainer.epochs_done(), content_of(folder / "net")};
}

}  // namespace

TEST_CASE("early stopping ends a training that was stopped as one that was not", "[train]") {
  const Dataset data = small_data(60);
  const TemporaryFolder folder;
  for (const DevicePtr& device : devices()) {
    for (const EarlyStopping& early :
         {EarlyStopping{.patience = 3}, EarlyStopping{.monitor = EarlyStopping::Monitor::accuracy, .patience = 4}}) {
      const double ema = early.patience == 3 ? 0 : 0.8;
      INFO(device->info().id << ", patience " << early.patience);
      FitOptions options = options_of(early);
      options.checkpoint = folder / "whole";
      Trainer whole = new_trainer(device, ema);
      const End expected = end_of(whole, whole.fit(data, options));
      REQUIRE(expected.how == History::End::early);
      REQUIRE(expected.best_epoch + early.patience == expected.epochs);

      // After the best epoch, within a later one.
      options.checkpoint = folder / "run";
      FitOptions part = options;
      part.max_steps = expected.best_epoch * 3 + 4;
      Trainer stopped = new_trainer(device, ema);
      CHECK(stopped.fit(data, part).best_epoch == expected.best_epoch);
      Trainer resumed = new_trainer(device, ema);
      resumed.resume(folder / "run");
      CHECK(end_of(resumed, resumed.fit(data, options)) == expected);
      CHECK(end_of(stopped, stopped.fit(data, options)) == expected);

      // The last checkpoint of a training that was over.
      Trainer over = new_trainer(device, ema);
      over.resume(folder / "whole");
      const History history = over.fit(data, options);
      CHECK(history.epochs.empty());
      CHECK(end_of(over, history) == expected);
      EarlyStopping patient = early;
      patient.patience += 2;
      options.early_stopping = patient;
      Trainer longer = new_trainer(device, ema);
      longer.resume(folder / "whole");
      CHECK(longer.fit(data, options).epochs.size() == 2);
      CHECK(longer.epochs_done() == expected.epochs + 2);
    }
  }
}

TEST_CASE("a new fit begins early stopping anew", "[train]") {
  const Dataset data = small_data(60);
  const FitOptions options = options_of({.patience = 2});
  Trainer trainer = new_trainer(devices().front(), 0);
  const History first = trainer.fit(data, options), second = trainer.fit(data, options);
  CHECK(second.end == History::End::early);
  CHECK(second.best_epoch > trainer.epochs_done() - static_cast<std::int64_t>(second.epochs.size()));
  CHECK(second.best_epoch > first.best_epoch);
}

TEST_CASE("a checkpoint that does not know its best epoch starts the count, with a warning", "[train]") {
  const Dataset data = small_data(60);
  const TemporaryFolder folder;
  const DevicePtr& device = devices().front();
  FitOptions options = options_of({.patience = 20});
  options.checkpoint = folder / "run";
  options.max_steps = 10;  // of 3 an epoch
  Trainer trainer = new_trainer(device, 0);
  trainer.fit(data, options);
  const io::Checkpoint checkpoint = io::load_checkpoint(folder / "run");
  CHECK(checkpoint.tensors.contains("best.0.weight"));
  const auto warns = [&](const EarlyStopping& early) {
    const Listener listener;
    Trainer resumed = new_trainer(device, 0);
    resumed.resume(folder / "run");
    FitOptions more = options;
    more.early_stopping = early;
    more.checkpoint.clear();
    resumed.fit(data, more);
    return listener.messages.find("not noted its best epoch") != std::string::npos;
  };
  CHECK_FALSE(warns({.patience = 20}));
  CHECK(warns({.monitor = EarlyStopping::Monitor::accuracy, .patience = 20}));
  io::Checkpoint old = checkpoint;
  std::erase_if(old.tensors, [](const auto& one) { return one.first.starts_with("best."); });
  std::erase_if(old.info.extra, [](const auto& one) { return one.first.starts_with("best_"); });
  io::save_checkpoint(folder / "run", old.tensors, old.info);
  CHECK(warns({.patience = 20}));
  io::Checkpoint damaged = checkpoint;
  damaged.info.extra["best_score"] = "low";
  io::save_checkpoint(folder / "run", damaged.tensors, damaged.info);
  Trainer refused = new_trainer(device, 0);
  CHECK_THROWS_AS(refused.resume(folder / "run"), FormatError);
}
