// Trainings whose devices read each other's memory, on devices that only seem to: their sums run when the compute queue
// waits for them, and no earlier.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <stdexcept>

#include "collective/rank_threads.hpp"
#include "concord/train/trainer.hpp"
#include "forwarding_device.hpp"
#include "train/small_training.hpp"
#include "train/training_result.hpp"

namespace concord::test {
namespace {

using collective::GroupPtr;

/// What the ranks give each other.
class Wires {
 public:
  explicit Wires(int ranks) : ranks_(static_cast<std::size_t>(ranks)) {}
  /// The values of all ranks, once all have come to this sum. Without `waits`, none if one has not come.
  std::vector<std::vector<float>> meet(std::size_t sum, int rank, std::vector<float> own, bool waits) {
    std::unique_lock lock(mutex_);
    std::vector<std::vector<float>>& all = sums_[sum];
    all.resize(ranks_);
    all[static_cast<std::size_t>(rank)] = std::move(own);
    changed_.notify_all();
    const auto have_come = [&] { return std::ranges::none_of(all, &std::vector<float>::empty); };
    if (waits) changed_.wait(lock, have_come);
    return have_come() ? all : std::vector<std::vector<float>>{};
  }

 private:
  std::size_t ranks_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::size_t, std::vector<std::vector<float>>> sums_;
};

class PeerDevice final : public ForwardingDevice {
 public:
  PeerDevice(DevicePtr device, std::shared_ptr<Wires> wires, int rank)
      : ForwardingDevice(std::move(device)), wires_(std::move(wires)), rank_(rank) {
    info_.pci_address = fmt::format("{}", rank);
  }
  [[nodiscard]] std::unique_ptr<PeerMemory> allocate_peer(std::size_t bytes, int ranks, double deadline,
                                                          bool apart) override;
  void wait_for(const EventPtr& event) override;
  /// A sum. Without `waits`, returns false if another rank has not come to it.
  using Sum = std::function<bool(std::size_t number, bool waits)>;
  EventPtr enqueue(Sum sum);
  /// Runs the first `number` sums of all. Returns whether they have run.
  bool run_until(std::size_t number, bool waits) {
    for (; run_ < number; ++run_) {
      if (!waiting_.front()(run_, waits)) return false;
      waiting_.pop_front();
    }
    return true;
  }
  void run_all() { run_until(added_, true); }
  void drop_all() {
    waiting_.clear();
    run_ = added_;
  }
  [[nodiscard]] Wires& wires() { return *wires_; }
  [[nodiscard]] int rank() const { return rank_; }

 private:
  std::shared_ptr<Wires> wires_;
  int rank_;
  std::deque<Sum> waiting_;
  std::size_t added_ = 0, run_ = 0;
};

class SumEvent final : public Event {
 public:
  SumEvent(PeerDevice& device, std::size_t number) : device_(device), number_(number) {}
  void wait() override { throw std::logic_error("the host waits for a sum between devices"); }
  [[nodiscard]] bool is_reached() override { return device_.run_until(number_, false); }
  [[nodiscard]] std::size_t number() const { return number_; }

 private:
  PeerDevice& device_;
  std::size_t number_;
};

EventPtr PeerDevice::enqueue(Sum sum) {
  waiting_.push_back(std::move(sum));
  return std::make_shared<SumEvent>(*this, ++added_);
}

void PeerDevice::wait_for(const EventPtr& event) {
  const auto* const sum = dynamic_cast<const SumEvent*>(event.get());
  if (sum == nullptr) return ForwardingDevice::wait_for(event);
  run_until(sum->number(), true);
}

class SeemingMemory final : public PeerMemory {
 public:
  SeemingMemory(PeerDevice& device, std::size_t bytes)
      : device_(device), buffer_(device.allocate(bytes)), file_(::open("/dev/null", O_RDONLY | O_CLOEXEC)) {}
  ~SeemingMemory() override { ::close(file_); }
  [[nodiscard]] const BufferPtr& buffer() const override { return buffer_; }
  [[nodiscard]] int file() const override { return file_; }
  void connect(std::vector<int> files, int) override {
    for (const int file : files) {
      if (file >= 0) ::close(file);
    }
  }
  [[nodiscard]] EventPtr sum(std::size_t first, std::size_t count, const Buffer* start, std::size_t started,
                             const EventPtr&) override {
    return device_.enqueue([=, this](std::size_t number, bool waits) {
      std::vector<float> own(count), sums(count, 0.0F);
      device_.read(*buffer_, first * sizeof(float), std::as_writable_bytes(std::span(own)));
      const std::vector<std::vector<float>> all = device_.wires().meet(number, device_.rank(), own, waits);
      if (all.empty()) return false;
      if (started > 0) device_.read(*start, 0, std::as_writable_bytes(std::span(sums).first(started)));
      for (const std::vector<float>& of_rank : all) {
        for (std::size_t i = 0; i < count; ++i) sums[i] += of_rank[i];
      }
      device_.write(*buffer_, first * sizeof(float), std::as_bytes(std::span(sums)));
      return true;
    });
  }
  void give_up() override { device_.drop_all(); }
  [[nodiscard]] int lost_rank() override {
    device_.run_all();
    return -1;
  }

 private:
  PeerDevice& device_;
  BufferPtr buffer_;
  int file_;
};

std::unique_ptr<PeerMemory> PeerDevice::allocate_peer(std::size_t bytes, int, double, bool) {
  return std::make_unique<SeemingMemory>(*this, bytes);
}

/// More than 16 MiB of gradients, the last of which go alone.
nn::Sequential wide_net() {
  return nn::Sequential{nn::Linear{6, 16},      nn::ReLU{}, nn::Linear{16, 2100}, nn::ReLU{},
                        nn::Linear{2100, 2100}, nn::ReLU{}, nn::Linear{2100, 3}};
}

constexpr int kRanks = 2;

TrainingResult trained(const Dataset& data, const DevicePtr& device, const TrainerOptions& options,
                       std::int64_t steps_before_error = 0) {
  Trainer trainer{wide_net(), loss::cross_entropy, optim::Adam{.lr = 0.01}, device, options};
  FitOptions fit{.epochs = 1, .batch = 8};
  if (steps_before_error > 0) {
    fit.stop = [&]() -> bool {
      if (trainer.steps_done() >= steps_before_error) throw Error("this rank ends");
      return false;
    };
  }
  const History history = trainer.fit(data, fit);
  return result_of(trainer, history);
}

/// On one device, with the batches of all ranks.
TrainingResult accumulated(const Dataset& data, const DevicePtr& device, TrainerOptions options) {
  options.min_ranks = 0;
  options.accumulate = kRanks;
  return trained(data, device, options);
}

/// Of each rank. The last one may end with an error after its first step.
std::vector<TrainingResult> on_peers(const Dataset& data, const Device& device, const TrainerOptions& options,
                                     std::vector<std::string>& errors, bool last_ends = false) {
  const auto wires = std::make_shared<Wires>(kRanks);
  std::vector<TrainingResult> results(kRanks);
  errors = on_ranks(
      kRanks,
      [&](const GroupPtr& group) {
        TrainerOptions own = options;
        own.group = group;
        const auto peer = std::make_shared<PeerDevice>(Device::open(device.info().id), wires, group->rank());
        const bool ends = last_ends && group->rank() == kRanks - 1;
        results[static_cast<std::size_t>(group->rank())] = trained(data, peer, own, ends ? 1 : 0);
      },
      std::chrono::minutes(5));
  return results;
}

/// Whether ranks on such devices leave what one device with accumulated batches does.
void check_training(const TrainerOptions& options) {
  const Dataset data = small_data(44);
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    const TrainingResult one = accumulated(data, device, options);
    std::vector<std::string> errors;
    const std::vector<TrainingResult> several = on_peers(data, *device, options, errors);
    CHECK(errors == std::vector<std::string>(kRanks));
    for (const TrainingResult& result : several) check_equal(one, result);
  }
}

}  // namespace

TEST_CASE("sums between devices that come late have the bits of accumulated batches", "[train][collective][peers]") {
  check_training({.seed = 4});
  check_training({.seed = 4, .clip = {.norm = 0.5}, .ema_decay = 0.9});  // none is late
  check_training({.seed = 4, .gradients = Precision::bf16});             // numbers that are no gradients go alone
  check_training({.seed = 4, .min_ranks = 1});                           // none is late
}

TEST_CASE("a rank that is lost while the devices sum is noticed before the deadline", "[train][collective][peers]") {
  const Dataset data = small_data(44);
  const DevicePtr device = devices().front();
  const TrainerOptions options{.seed = 4, .min_ranks = 1};
  const TrainingResult one = accumulated(data, device, options);
  std::vector<std::string> errors;
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<TrainingResult> several = on_peers(data, *device, options, errors, true);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::minutes(2));
  CHECK(errors == std::vector<std::string>{"", "this rank ends"});
  check_equal(one, several[0]);
}

}  // namespace concord::test
