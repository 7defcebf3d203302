#include "concord/device/fresh_memory.hpp"

#include "concord/core/debug_options.hpp"

namespace concord {

void fill_fresh(Device& device, Buffer& memory) {
  if (!debug_flag("fill_memory", false)) return;
  constexpr std::uint32_t kNan = 0xffffffffU;
  device.fill(memory, 0, memory.bytes() / sizeof kNan * sizeof kNan, kNan);
  device.finish();  // the transfer queue may write to it next
}

}  // namespace concord
