// What every device owes: memory and its accounting, data movement in order with the compute queue, events.
#include "concord/device/device.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "concord_test.hpp"
#include "setting.hpp"

namespace concord::test {
namespace {

std::vector<std::byte> pattern(std::size_t bytes, unsigned seed = 7) {
  std::vector<std::byte> out(bytes);
  for (std::size_t i = 0; i < bytes; ++i) out[i] = static_cast<std::byte>(i * seed + i / 251);
  return out;
}

std::vector<std::byte> read(Device& device, const Buffer& buffer, std::size_t offset, std::size_t bytes) {
  std::vector<std::byte> out(bytes);
  device.read(buffer, offset, out);
  return out;
}

std::vector<std::byte> repeated(std::uint32_t word, std::size_t bytes) {
  std::vector<std::byte> out(bytes);
  for (std::size_t i = 0; i < bytes; i += 4) std::memcpy(out.data() + i, &word, 4);
  return out;
}

}  // namespace

TEST_CASE("what is written to a device is read back, whatever the size and offset", "[device]") {
  for (const DevicePtr& device : devices()) {
    CAPTURE(device->info().id);
    // The largest is several times what a transfer may stage at once.
    for (const std::size_t bytes : {1u, 5u, 4096u, 1'000'003u, 20'000'001u}) {
      CAPTURE(bytes);
      const BufferPtr buffer = device->allocate(bytes + 3);
      const std::vector<std::byte> data = pattern(bytes);
      device->write(*buffer, 3, data);
      CHECK(read(*device, *buffer, 3, bytes) == data);
    }
  }
}

TEST_CASE("a buffer over the host's memory is that memory", "[device]") {
  for (const DevicePtr& device : devices()) {
    CAPTURE(device->info().id);
    std::vector<std::byte> memory(4096);
    const BufferPtr buffer = device->buffer_over(memory);
    REQUIRE((buffer != nullptr) == (device->info().id == "cpu"));
    if (!buffer) continue;
    CHECK(buffer->bytes() == memory.size());
    device->fill(*buffer, 64, 1024, 0x01020304);
    std::vector<std::byte> expected(4096);
    std::ranges::copy(repeated(0x01020304, 1024), expected.begin() + 64);
    CHECK(memory == expected);
  }
}

TEST_CASE("many small writes keep their order and their source may be reused at once", "[device]") {
  for (const DevicePtr& device : devices()) {
    CAPTURE(device->info().id);
    const std::size_t count = 3000;
    const BufferPtr buffer = device->allocate(count * 4);
    for (std::uint32_t i = 0; i < count; ++i) {
      std::uint32_t value = i * 3;
      device->write(*buffer, i * 4, std::as_bytes(std::span(&value, 1)));
      value = 0;
    }
    std::vector<std::uint32_t> got(count), want(count);
    device->read(*buffer, 0, std::as_writable_bytes(std::span(got)));
    for (std::uint32_t i = 0; i < count; ++i) want[i] = i * 3;
    CHECK(got == want);
  }
}

TEST_CASE("a device fills and copies parts of buffers", "[device]") {
  for (const DevicePtr& device : devices()) {
    CAPTURE(device->info().id);
    const BufferPtr a = device->allocate(4096), b = device->allocate(4096);
    device->fill(*a, 0, 4096, 0xdeadbeefU);
    device->fill(*b, 0, 4096, 0);
    device->fill(*a, 1024, 8, 7);
    device->copy(*a, 1020, *b, 4, 16);
    CHECK(read(*device, *b, 0, 4) == repeated(0, 4));
    CHECK(read(*device, *b, 4, 4) == repeated(0xdeadbeefU, 4));
    CHECK(read(*device, *b, 8, 8) == repeated(7, 8));
    CHECK(read(*device, *b, 16, 4) == repeated(0xdeadbeefU, 4));
    CHECK(read(*device, *b, 20, 4076) == repeated(0, 4076));
  }
}

TEST_CASE("new memory is NaN where that is asked for", "[device]") {
  const DebugOption filled("fill_memory", "1");
  for (const DevicePtr& device : devices()) {
    CAPTURE(device->info().id);
    const BufferPtr memory = device->allocate(1026);
    CHECK(read(*device, *memory, 0, 1024) == repeated(0xffffffffU, 1024));
  }
}

TEST_CASE("a transfer beside the compute queue is seen by what waits for it", "[device]") {
  for (const DevicePtr& device : devices()) {
    CAPTURE(device->info().id);
    const BufferPtr buffer = device->allocate(1 << 16), copy = device->allocate(1 << 16);
    const StagingPtr staging = device->allocate_staging(1 << 16);
    REQUIRE(staging->bytes().size() == 1 << 16);
    for (unsigned round = 1; round <= 3; ++round) {
      const std::vector<std::byte> data = pattern(1 << 16, round);
      std::ranges::copy(data, staging->bytes().begin());
      const EventPtr done = device->write_async(*buffer, 0, staging, 1 << 16, round == 1 ? nullptr : device->record());
      device->wait_for(done);
      device->copy(*buffer, 0, *copy, 0, 1 << 16);
      done->wait();
      CHECK(read(*device, *copy, 0, 1 << 16) == data);
    }
  }
}

TEST_CASE("an event of the compute queue can be waited for", "[device]") {
  for (const DevicePtr& device : devices()) {
    CAPTURE(device->info().id);
    const BufferPtr buffer = device->allocate(4096);
    device->fill(*buffer, 0, 4096, 5);
    const EventPtr event = device->record();
    device->flush();
    event->wait();
    device->wait_for(event);
    device->finish();
    CHECK(read(*device, *buffer, 4092, 4) == repeated(5, 4));
  }
}

TEST_CASE("reads and writes that nobody waits for keep their order", "[device]") {
  for (const DevicePtr& device : devices()) {
    CAPTURE(device->info().id);
    constexpr std::size_t bytes = 1 << 20;
    const BufferPtr buffer = device->allocate(bytes);
    std::vector<std::vector<std::byte>> written, got;
    std::vector<EventPtr> events;
    for (unsigned i = 0; i < 5; ++i) {
      written.push_back(pattern(bytes, i + 3));
      got.emplace_back(bytes);
    }
    for (std::size_t i = 0; i < 5; ++i) {
      device->write_deferred(*buffer, 0, written[i]);
      events.push_back(device->read_async(*buffer, 0, got[i]));
      device->fill(*buffer, 0, bytes, 9);
    }
    for (std::size_t i = 0; i < 5; ++i) {
      if (events[i]) events[i]->wait();
      CHECK(got[i] == written[i]);
    }
    CHECK(read(*device, *buffer, 0, bytes) == repeated(9, bytes));
    CHECK(device->read_async(*buffer, 0, {}) == nullptr);
  }
}

TEST_CASE("a device is finished when what was flushed is done", "[device]") {
  constexpr std::size_t kBytes = 16'000'000;
  const std::vector<std::byte> expected = repeated(20, kBytes);
  for (const DevicePtr& device : devices()) {
    CAPTURE(device->info().id);
    const BufferPtr from = device->allocate(kBytes), to = device->allocate(kBytes);
    std::vector<std::byte> out(kBytes);
    for (std::uint32_t i = 1; i <= 20; ++i) {
      device->fill(*from, 0, kBytes, i);
      device->copy(*from, 0, *to, 0, kBytes);
    }
    const EventPtr last = device->read_async(*to, 0, out);
    device->flush();
    device->finish();
    CHECK(out == expected);
    if (last) last->wait();  // memory that is still written to is not given back
  }
}

TEST_CASE("memory is counted, and its lack is an exception that leaves the device usable", "[device]") {
  for (const DevicePtr& device : devices()) {
    CAPTURE(device->info().id);
    const std::size_t before = device->allocated();
    BufferPtr buffer = device->allocate(1 << 20);
    CHECK(buffer->bytes() == 1 << 20);
    CHECK(device->allocated() == before + (1 << 20));
    CHECK(device->peak_allocated() >= before + (1 << 20));
    buffer.reset();
    CHECK(device->allocated() == before);
    CHECK_THROWS_AS(static_cast<void>(device->allocate(std::size_t{1} << 60)), OutOfMemory);
    CHECK(device->allocated() == before);
    buffer = device->allocate(16);
    device->fill(*buffer, 0, 16, 1);
    CHECK(read(*device, *buffer, 0, 16) == repeated(1, 16));
  }
}

TEST_CASE("data movement outside a buffer is refused", "[device]") {
  for (const DevicePtr& device : devices()) {
    CAPTURE(device->info().id);
    const BufferPtr buffer = device->allocate(16);
    const std::vector<std::byte> data(8);
    CHECK_THROWS_AS(device->write(*buffer, 12, data), DeviceError);
    CHECK_THROWS_AS(device->write_deferred(*buffer, 12, data), DeviceError);
    CHECK_THROWS_AS(read(*device, *buffer, 17, 1), DeviceError);
    std::vector<std::byte> out(8);
    CHECK_THROWS_AS((void)device->read_async(*buffer, 9, out), DeviceError);
    CHECK_THROWS_AS(device->fill(*buffer, 8, 12, 0), DeviceError);
    CHECK_THROWS_AS(device->copy(*buffer, 0, *buffer, 12, 8), DeviceError);
  }
}

}  // namespace concord::test
