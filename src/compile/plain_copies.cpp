// Reorders between a kernel's layout and plain numbers.
#include "concord/compile/plain_copies.hpp"

namespace concord {

EventPtr PlainCopies::read(Device& device, const LoweredValue& value, const Operand& from, std::span<std::byte> to) {
  if (const BufferPtr direct = device.buffer_over(to)) {
    reorder(device, value, from, {direct.get(), 0}, true);
    return nullptr;
  }
  grow(device, plain_, to.size());
  reorder(device, value, from, {plain_.get(), 0}, true);
  return device.read_async(*plain_, 0, to);
}

void PlainCopies::write(Device& device, const LoweredValue& value, std::span<const std::byte> from, const Operand& to) {
  grow(device, plain_, from.size());
  device.write_deferred(*plain_, 0, from);
  reorder(device, value, to, {plain_.get(), 0}, false);
}

void PlainCopies::grow(Device& device, BufferPtr& buffer, std::size_t bytes) {
  if (buffer && buffer->bytes() >= bytes) return;
  buffer.reset();  // before the larger one is made
  buffer = device.allocate(std::max<std::size_t>(bytes, 1));
}

void PlainCopies::reorder(Device& device, const LoweredValue& value, const Operand& stored, const Operand& plain,
                          bool to_plain) {
  std::unique_ptr<Kernel>& kernel = reorders_[{&value, to_plain}];
  if (!kernel) {
    kernel = to_plain ? device.prepare_reorder(value.spec, value.layout, nullptr)
                      : device.prepare_reorder(value.spec, nullptr, value.layout);
  }
  grow(device, workspace_, kernel->workspace());
  const Operand& from = to_plain ? stored : plain;
  const Operand& to = to_plain ? plain : stored;
  kernel->bind({&from, 1}, {&to, 1}, {workspace_.get(), 0})->enqueue();
}

}  // namespace concord
