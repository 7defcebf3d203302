// The memory plan, tested without any device.
#include "concord/compile/plan.hpp"

#include "concord_test.hpp"

namespace concord {
namespace {

bool overlap(std::size_t a, std::size_t a_bytes, std::size_t b, std::size_t b_bytes) {
  return a < b + b_bytes && b < a + a_bytes;
}

TEST_CASE("blocks alive together never overlap, blocks that are not share memory", "[compile]") {
  const std::vector<MemoryBlock> blocks{{1000, 0, 1}, {500, 1, 2}, {1000, 2, 3}, {700, 3, 4}, {64, 0, 4}, {1, 2, 2}};
  const Arena arena = place_blocks(blocks, 1 << 20);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (blocks[i].last < blocks[j].first || blocks[j].last < blocks[i].first) continue;
      INFO(i << " and " << j);
      CHECK_FALSE(overlap(arena.placements[i].offset, blocks[i].bytes, arena.placements[j].offset, blocks[j].bytes));
    }
  }
  REQUIRE(arena.slabs.size() == 1);
  CHECK(arena.slabs[0] < 1000 + 500 + 1000 + 700 + 64);
}

TEST_CASE("no slab passes the device's largest allocation", "[compile]") {
  const std::vector<MemoryBlock> blocks{{3000, 0, 9}, {3000, 0, 9}, {1000, 0, 9}};
  const Arena arena = place_blocks(blocks, 4096);
  CHECK(arena.slabs.size() == 2);
  for (const std::size_t slab : arena.slabs) CHECK(slab <= 4096);
  CHECK_THROWS_AS(place_blocks(std::vector<MemoryBlock>{{5000, 0, 1}}, 4096), OutOfMemory);
}

TEST_CASE("the bytes in use are those of the blocks that are alive", "[compile]") {
  const std::vector<MemoryBlock> blocks{{1000, 0, 1}, {256, 1, 2}, {1, 3, 3}, {512, 2, 4}};
  CHECK(bytes_in_use(blocks, 4) == std::vector<std::size_t>{1024, 1280, 768, 768});
}

TEST_CASE("a chain of layers needs the memory of its widest step", "[compile]") {
  std::vector<MemoryBlock> blocks;
  for (int i = 0; i < 50; ++i) blocks.push_back({1 << 16, i, i + 1});
  CHECK(place_blocks(blocks, 1 << 30).slabs[0] == 2 << 16);
}

}  // namespace
}  // namespace concord
