// Training on several ranks has the bits of accumulated batches on one device.
#include <algorithm>
#include <map>

#include "collective/rank_threads.hpp"
#include "concord/train/trainer.hpp"
#include "files.hpp"
#include "train/small_training.hpp"

using namespace concord;
using namespace concord::test;
using collective::GroupPtr;

namespace {

/// What a training leaves behind.
struct Result {
  std::map<std::string, std::vector<std::byte>> weights;
  std::vector<double> losses;
  std::int64_t steps = 0;
};

using MakeTrainer = std::function<Trainer(const DevicePtr& device, const TrainerOptions& options)>;

Trainer dropout_trainer(const DevicePtr& device, const TrainerOptions& options) {
  return Trainer{small_net(), loss::cross_entropy, optim::Adam{.lr = 0.01}, device, options};
}

Result result_of(const Trainer& trainer, const History& history) {
  Result result{{}, {}, trainer.steps_done()};
  for (const auto& [name, bytes] : bytes_of(trainer)) {
    const bool is_own = name == "train.cursor" || name == kRandomState || name.starts_with("optim.accumulated") ||
                        name.ends_with(".accumulated") || name.starts_with("optim.gathered");
    if (!is_own) result.weights[name] = bytes;
  }
  for (const EpochReport& epoch : history.epochs) {
    result.losses.push_back(epoch.loss);
    if (epoch.validation) result.losses.push_back(epoch.validation->loss);
  }
  return result;
}

Result on_one(const DevicePtr& device, int accumulate, TrainerOptions options, const Samples& data,
              const FitOptions& fit, const MakeTrainer& make) {
  options.accumulate = accumulate;
  Trainer trainer = make(device, options);
  const History history = trainer.fit(data, fit);
  return result_of(trainer, history);
}

/// Of each rank.
std::vector<Result> on_several(const DevicePtr& device, int size, const TrainerOptions& options, const Samples& data,
                               const FitOptions& fit, const MakeTrainer& make) {
  std::vector<Result> results(static_cast<std::size_t>(size));
  const auto errors = on_ranks(size, [&](const GroupPtr& group) {
    TrainerOptions own = options;
    own.group = group;
    Trainer trainer = make(Device::open(device->info().id), own);
    const History history = trainer.fit(data, fit);
    results[static_cast<std::size_t>(group->rank())] = result_of(trainer, history);
  });
  CHECK(errors == std::vector<std::string>(static_cast<std::size_t>(size)));
  return results;
}

void check_equal(const Result& one, const std::vector<Result>& several) {
  for (std::size_t rank = 0; rank < several.size(); ++rank) {
    INFO("rank " << rank);
    CHECK(several[rank].losses == one.losses);
    CHECK(several[rank].steps == one.steps);
    for (const auto& [name, bytes] : one.weights) {
      INFO(name);
      const auto found = several[rank].weights.find(name);
      REQUIRE(found != several[rank].weights.end());
      CHECK((found->second == bytes));
    }
  }
}

}  // namespace

TEST_CASE("ranks have the bits of accumulated batches", "[train][collective]") {
  // 12 full batches and a shorter one: with 2 ranks the last update has one batch, with 3 too.
  const Dataset data = small_data(101), test = small_data(40, 1);
  const FitOptions fit{.epochs = 2, .batch = 8, .validate = std::make_shared<Dataset>(test)};
  for (const DevicePtr& device : devices()) {
    for (const int size : {2, 3, 4}) {
      INFO(device->info().id << ", " << size << " ranks");
      const TrainerOptions options{.seed = 4, .clip = {.norm = 0.5}, .ema_decay = 0.9};
      const Result one = on_one(device, size, options, data, fit, dropout_trainer);
      check_equal(one, on_several(device, size, options, data, fit, dropout_trainer));
    }
  }
}
