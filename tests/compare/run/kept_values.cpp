// What a device is given to copy later lies still until it is done, also where a comparison ends with an error.
#include <algorithm>
#include <vector>

#include "concord/compare/compare.hpp"
#include "concord/core/error.hpp"
#include "forwarding_device.hpp"
#include "train/small_training.hpp"

namespace concord::test {
namespace {

/// Looks at what it was to copy only when it is finished, and is lost after so many reads.
class LateDevice final : public ForwardingDevice {
 public:
  LateDevice(DevicePtr device, std::size_t reads) : ForwardingDevice(std::move(device)), reads_left(reads) {
    info_.id = "late";
  }
  void write_deferred(Buffer& dst, std::size_t offset, std::span<const std::byte> bytes) override {
    waiting_.push_back({bytes, {bytes.begin(), bytes.end()}});
    ++kept;
    ForwardingDevice::write_deferred(dst, offset, bytes);
  }
  [[nodiscard]] EventPtr read_async(const Buffer& src, std::size_t offset, std::span<std::byte> bytes) override {
    if (reads_left == 0) throw DeviceError("late: the device is lost");
    --reads_left;
    return ForwardingDevice::read_async(src, offset, bytes);
  }
  void finish() override {
    for (const Waiting& one : waiting_) changed += std::ranges::equal(one.bytes, one.at_first) ? 0 : 1;
    waiting_.clear();
    ForwardingDevice::finish();
  }
  [[nodiscard]] bool is_finished() const { return waiting_.empty(); }

  std::size_t kept = 0, changed = 0, reads_left;

 private:
  struct Waiting {
    std::span<const std::byte> bytes;
    std::vector<std::byte> at_first;
  };
  std::vector<Waiting> waiting_;
};

Comparison compared_with(const DevicePtr& device) {
  nn::Sequential network = small_net();
  CompareOptions options{.steps = 4, .batch = 10, .seed = 3, .check_every = 1};
  options.seconds = 0.001;
  const std::vector<DevicePtr> list{devices().front(), device};
  return compare(network, "small", loss::cross_entropy, optim::Sgd{.lr = 0.05F}, small_data(60), list, options);
}

}  // namespace

TEST_CASE("values that a device copies late lie still until it is finished, also after an error", "[compare]") {
  constexpr std::size_t kMost = 1U << 20;
  const DevicePtr second = Device::open(devices().front()->info().id);
  const auto whole = std::make_shared<LateDevice>(second, kMost);
  CHECK(compared_with(whole).disagreement().empty());
  CHECK(whole->kept > 0);
  CHECK(whole->changed == 0);
  CHECK(whole->is_finished());
  const std::size_t all = kMost - whole->reads_left;
  for (std::size_t reads = 0; reads < all; ++reads) {
    INFO("lost after " << reads << " reads");
    const auto lost = std::make_shared<LateDevice>(second, reads);
    CHECK_THROWS_AS(compared_with(lost), DeviceError);
    CHECK(lost->changed == 0);
    CHECK(lost->is_finished());
  }
}

}  // namespace concord::test
