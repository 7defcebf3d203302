// Sums over the memory of several GPUs, with two ranks on one GPU.
#include "concord/device/peer_memory.hpp"

#include <unistd.h>

#include <cmath>
#include <vector>

#include "opencl/opencl_test.hpp"

namespace concord::test {
namespace {

constexpr std::size_t kFloats = 4096, kBytes = kFloats * sizeof(float);
constexpr double kDeadline = 0.3;

/// The memory of two ranks, of which the first is connected with the second.
struct TwoRanks {
  explicit TwoRanks(Device& device)
      : first(device.allocate_peer(kBytes, 2, kDeadline, true)),
        second(device.allocate_peer(kBytes, 2, kDeadline, true)) {
    if (!first || !second) return;
    first->connect({-1, ::dup(second->file())}, 0);
    const std::vector<float> ones(kFloats, 1);
    for (const PeerMemory* one : {first.get(), second.get()}) {
      device.write(*one->buffer(), 0, std::as_bytes(std::span(ones)));
    }
    device.finish();
  }

  std::unique_ptr<PeerMemory> first, second;
};

/// Of the first rank, after a sum for which the second one does not come.
std::vector<float> sums_of_first(Device& device, TwoRanks& ranks) {
  ranks.first->sum(0, kFloats, nullptr, 0, nullptr)->wait();
  CHECK(ranks.first->lost_rank() == 1);
  std::vector<float> sums(kFloats);
  device.read(*ranks.first->buffer(), 0, std::as_writable_bytes(std::span(sums)));
  return sums;
}

bool are_nan(const std::vector<float>& values) {
  return std::ranges::all_of(values, [](float value) { return std::isnan(value); });
}

}  // namespace

TEST_CASE("a sum without a rank is NaN, also if that rank ends in the midst of it", "[opencl][collective]") {
  for (const DevicePtr& device : opencl_devices()) {
    TwoRanks absent(*device);
    if (!absent.first || !absent.second) continue;
    INFO(device->info().name);
    CHECK(are_nan(sums_of_first(*device, absent)));
    // The second rank has come to the first meeting: behind the numbers, its flag is 1. It does not come to the second.
    TwoRanks halfway(*device);
    constexpr std::size_t kFlagBytes = 128;
    const std::uint32_t come = 1;
    device->write(*halfway.first->buffer(), kBytes + kFlagBytes, std::as_bytes(std::span(&come, 1)));
    device->finish();
    CHECK(are_nan(sums_of_first(*device, halfway)));
  }
}

}  // namespace concord::test
