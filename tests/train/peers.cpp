// Trainings whose devices read each other's memory, on devices that only seem to: their sums run when the compute queue
// waits for them, and no earlier.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
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
  /// The values of all ranks, once all have come to this sum.
  std::vector<std::vector<float>> meet(std::size_t sum, int rank, std::vector<float> own) {
    std::unique_lock lock(mutex_);
    std::vector<std::vector<float>>& all = sums_[sum];
    all.resize(ranks_);
    all[static_cast<std::size_t>(rank)] = std::move(own);
    changed_.notify_all();
    changed_.wait(lock, [&] { return std::ranges::none_of(all, &std::vector<float>::empty); });
    return all;
  }

 private:
  std::size_t ranks_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::size_t, std::vector<std::vector<float>>> sums_;
};

class SumEvent final : public Event {
 public:
  explicit SumEvent(std::size_t number) : number_(number) {}
  void wait() override { throw std::logic_error("the host waits for a sum between devices"); }
  [[nodiscard]] std::size_t number() const { return number_; }

 private:
  std::size_t number_;
};

class PeerDevice final : public ForwardingDevice {
 public:
  PeerDevice(DevicePtr device, std::shared_ptr<Wires> wires, int rank)
      : ForwardingDevice(std::move(device)), wires_(std::move(wires)), rank_(rank) {
    info_.pci_address = fmt::format("{}", rank);
  }
  [[nodiscard]] std::unique_ptr<PeerMemory> allocate_peer(std::size_t bytes, int ranks, double deadline,
                                                          bool apart) override;
  void wait_for(const EventPtr& event) override {
    const auto* const sum = dynamic_cast<const SumEvent*>(event.get());
    if (sum == nullptr) return ForwardingDevice::wait_for(event);
    run_until(sum->number());
  }
  /// Enqueues a sum.
  EventPtr add(std::function<void(std::size_t number)> sum) {
    waiting_.push_back(std::move(sum));
    return std::make_shared<SumEvent>(++added_);
  }
  /// Runs the first `number` sums of all.
  void run_until(std::size_t number) {
    for (; run_ < number; ++run_) {
      waiting_.front()(run_);
      waiting_.pop_front();
    }
  }
  void run_all() { run_until(added_); }
  [[nodiscard]] Wires& wires() { return *wires_; }
  [[nodiscard]] int rank() const { return rank_; }

 private:
  std::shared_ptr<Wires> wires_;
  int rank_;
  std::deque<std::function<void(std::size_t number)>> waiting_;
  std::size_t added_ = 0, run_ = 0;
};

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
    return device_.add([=, this](std::size_t number) {
      std::vector<float> own(count), sums(count, 0.0F);
      device_.read(*buffer_, first * sizeof(float), std::as_writable_bytes(std::span(own)));
      if (started > 0) device_.read(*start, 0, std::as_writable_bytes(std::span(sums).first(started)));
      for (const std::vector<float>& of_rank : device_.wires().meet(number, device_.rank(), own)) {
        for (std::size_t i = 0; i < count; ++i) sums[i] += of_rank[i];
      }
      device_.write(*buffer_, first * sizeof(float), std::as_bytes(std::span(sums)));
    });
  }
  void give_up() override {}
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

/// Whether ranks on such devices leave what one device with accumulated batches does.
void check_training(const TrainerOptions& options) {
  const Dataset data = small_data(44);
  const FitOptions fit{.epochs = 1, .batch = 8};
  const auto trained = [&](const DevicePtr& device, const TrainerOptions& own) {
    Trainer trainer{wide_net(), loss::cross_entropy, optim::Adam{.lr = 0.01}, device, own};
    const History history = trainer.fit(data, fit);
    return result_of(trainer, history);
  };
  constexpr int kRanks = 2;
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    TrainerOptions accumulating = options;
    accumulating.min_ranks = 0;
    accumulating.accumulate = kRanks;
    const TrainingResult one = trained(device, accumulating);
    const auto wires = std::make_shared<Wires>(kRanks);
    std::vector<TrainingResult> several(kRanks);
    const std::vector<std::string> errors = on_ranks(kRanks, [&](const GroupPtr& group) {
      TrainerOptions own = options;
      own.group = group;
      const auto peer = std::make_shared<PeerDevice>(Device::open(device->info().id), wires, group->rank());
      several[static_cast<std::size_t>(group->rank())] = trained(peer, own);
    });
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

}  // namespace concord::test
