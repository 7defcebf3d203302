// Memory of several devices, for sums that they make by themselves. Internal to the room.
#pragma once

#include <memory>

#include "concord/collective/group.hpp"
#include "concord/device/device.hpp"

namespace concord::train {

/// Whether all ranks say yes. They call it together, as the others.
[[nodiscard]] bool all_of(collective::Group& group, bool own);
/// Whether the ranks may sum in memory that their devices share: they are processes of one machine with a device each,
/// and $CONCORD_EXCHANGE does not say otherwise.
[[nodiscard]] bool may_share_memory(collective::Group& group, const DeviceInfo& own);
/// Connected memory of so many bytes, a multiple of 16, on the device of each rank, whose sums have been checked. Null
/// on all ranks if one of the devices cannot share memory, or has sums that are wrong. `apart` as
/// Device::allocate_peer.
[[nodiscard]] std::unique_ptr<PeerMemory> connected_peer_memory(collective::Group& group, Device& device,
                                                                std::size_t bytes, bool apart = false);
/// Throws RankLost if a rank did not come to a sum.
void require_all_ranks_of(PeerMemory& memory);

}  // namespace concord::train
