// Connecting the memory of devices: drivers are not trusted, so sums are checked first.
#include "concord/train/peers.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "concord/collective/gathered.hpp"
#include "concord/collective/shared_files.hpp"
#include "concord/collective/world.hpp"
#include "concord/core/check.hpp"
#include "concord/core/log.hpp"

namespace concord::train {
namespace {

/// Whether sums of small whole numbers are right.
bool sums_are_right(PeerMemory& memory, Device& device, const collective::Group& group, std::size_t count) {
  constexpr std::size_t kMost = 1 << 16;  // several work-groups have a part of them
  const std::size_t numbers = std::min(count, kMost);
  const auto ranks = static_cast<float>(group.size());
  std::vector<float> values(numbers);
  for (std::size_t i = 0; i < numbers; ++i) values[i] = static_cast<float>(i % 64) + static_cast<float>(group.rank());
  device.write(*memory.buffer(), 0, std::as_bytes(std::span(values)));
  device.wait_for(memory.sum(0, numbers, nullptr, 0, device.record()));
  device.read(*memory.buffer(), 0, std::as_writable_bytes(std::span(values)));
  if (memory.lost_rank() >= 0) return false;
  for (std::size_t i = 0; i < numbers; ++i) {
    if (values[i] != ranks * static_cast<float>(i % 64) + ranks * (ranks - 1) / 2) return false;
  }
  return true;
}

/// Whether this device sums over the memory of all.
bool connects(PeerMemory& memory, collective::Group& group) {
  const std::vector<int> files = collective::share_files(group, memory.file());
  try {
    memory.connect(files, group.rank());
    return true;
  } catch (const DeviceError& error) {
    log(LogLevel::warning, fmt::format("the memory of the other devices cannot be used: {}", error.what()));
    return false;
  }
}

/// Whether no two ranks have the same device: kernels of one would wait for kernels of the other, which do not run.
bool are_different_devices(collective::Group& group, const DeviceInfo& own) {
  using Address = std::array<char, 32>;
  Address address{};
  own.pci_address.copy(address.data(), address.size() - 1);
  std::vector<Address> all = collective::gathered(group, address);
  std::ranges::sort(all);
  return std::ranges::adjacent_find(all) == all.end();
}

}  // namespace

bool all_of(collective::Group& group, bool own) {
  float missing = own ? 0 : 1;
  group.all_reduce({&missing, 1});
  return missing == 0;
}

bool may_share_memory(collective::Group& group, const DeviceInfo& own) {
  const bool is_wanted = collective::wanted_transport() != "host" && group.transport() == "host";
  return all_of(group, is_wanted) && are_different_devices(group, own);
}

std::unique_ptr<PeerMemory> connected_peer_memory(collective::Group& group, Device& device, std::size_t bytes,
                                                  bool apart) {
  std::unique_ptr<PeerMemory> memory = device.allocate_peer(bytes, group.size(), collective::deadline_seconds(), apart);
  if (!all_of(group, memory != nullptr) || !all_of(group, connects(*memory, group)) ||
      !all_of(group, sums_are_right(*memory, device, group, bytes / sizeof(float)))) {
    return nullptr;
  }
  return memory;
}

void require_all_ranks_of(PeerMemory& memory) {
  const int lost = memory.lost_rank();
  CONCORD_CHECK(lost < 0, RankLost, "rank {} did not come to an exchange on the devices for {:g} s", lost,
                collective::deadline_seconds());
}

}  // namespace concord::train
