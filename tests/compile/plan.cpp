// The memory plan, tested without any device.
#include "concord/compile/plan.hpp"

#include "compile/fake_device.hpp"
#include "concord/compile/program_impl.hpp"
#include "concord/ops/matmul.hpp"

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

/// A kernel that wants scratch memory and cannot be bound.
class HungryKernel final : public Kernel {
 public:
  explicit HungryKernel(std::size_t bytes) : bytes_(bytes) {}
  [[nodiscard]] std::size_t workspace() const override { return bytes_; }
  [[nodiscard]] std::string name() const override { return "hungry"; }
  [[nodiscard]] std::unique_ptr<Launch> bind(std::span<const Operand>, std::span<const Operand>,
                                             Operand) const override {
    throw NotSupported("a kernel of a test is not bound");
  }

 private:
  std::size_t bytes_;
};

/// x·x, then its square, then the square of that: so many bytes of workspace each.
Lowered squares(const std::vector<std::size_t>& workspaces) {
  Graph graph;
  Value y = graph.input("x", {DType::f32, {64, 64}});
  for (std::size_t n = 0; n < workspaces.size(); ++n) y = matmul(y, y);
  Lowered program = lower(graph, std::vector{y}, false);
  for (std::size_t n = 0; n < workspaces.size(); ++n) {
    program.nodes[n].kernel = std::make_shared<HungryKernel>(workspaces[n]);
  }
  return program;
}

TEST_CASE("a workspace is there while its kernel runs, and no longer", "[compile]") {
  constexpr std::size_t kMatrix = 64 * 64 * 4, kLarge = 10 * kMatrix;
  const Lowered program = squares({kLarge, 0, 2 * kMatrix, kLarge});
  const MemoryPlan plan = plan_memory(program, false);
  REQUIRE(plan.workspaces.size() == 4);
  CHECK_FALSE(plan.workspaces[1]);
  for (const std::int32_t n : {0, 2, 3}) {
    const MemoryBlock& block = plan.blocks[plan.workspaces[static_cast<std::size_t>(n)].value()];
    CHECK(block.first == n);
    CHECK(block.last == n);
  }
  // Beside the largest workspace stand the input, the product's operand and its result.
  CHECK(place_blocks(plan.blocks, 1 << 30).slabs[0] <= kLarge + 3 * kMatrix);
  const std::vector<std::size_t> used = bytes_in_use(plan.blocks, 4);
  CHECK(used[1] == 3 * kMatrix);
}

TEST_CASE("a workspace larger than an allocation may be names its kernel's operator", "[compile]") {
  DeviceInfo info = test::FakeDevice().info();
  info.max_allocation = 1 << 20;
  const Lowered program = squares({0, 2 << 20});
  CHECK_THROWS_WITH(place(program, plan_memory(program, false), info),
                    test::contains(program.nodes[1].name) && test::contains("workspace of 2 MiB"));
}

}  // namespace
}  // namespace concord
