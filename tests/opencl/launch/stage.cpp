// Bound launches: stages that run once, the memory that they keep for themselves, and packed arguments.
#include "concord/opencl/launch/stage.hpp"

#include <bit>
#include <limits>
#include <numeric>

#include "concord/opencl/launch/constant_table.hpp"
#include "concord/opencl/program/source.hpp"
#include "opencl/context_of.hpp"
#include "opencl/opencl_test.hpp"

namespace concord::test {
namespace {

using namespace opencl;

constexpr std::size_t kItems = 64;

// `begin` keeps twice what the input has when it runs; `add` adds that to what the input has now, at two places.
constexpr const char* kSource = R"cl(
__kernel void begin(__global const int *src, ulong src_offset, __global int *kept, ulong kept_offset) {
  const size_t i = get_global_id(0);
  kept[kept_offset + i] = 2 * src[src_offset + i];
}
__kernel void add(__global const int *src, ulong src_offset, __global const int *kept, ulong kept_offset,
                  __global const int *later, ulong later_offset, __global int *dst, ulong dst_offset) {
  const size_t i = get_global_id(0);
  dst[dst_offset + i] = src[src_offset + i] + kept[kept_offset + i] + 1000 * later[later_offset + i % 32];
}
)cl";

StagedKernel once_and_always(Context& context) {
  const PendingProgram program = context.program_from(kSource);
  const KeptArgument memory = kept(kItems * sizeof(std::int32_t));
  std::vector<StagedKernel::AnyStage> stages;
  stages.push_back(Stage{.program = program,
                         .function = "begin",
                         .arguments = {input(0), memory},
                         .global = {kItems, 1, 1},
                         .once = true});
  stages.push_back(Stage{.program = program,
                         .function = "add",
                         .arguments = {input(0), memory, further(memory, kItems / 2 * sizeof(std::int32_t)), output(0)},
                         .global = {kItems, 1, 1}});
  return {context, "once and always", std::move(stages)};
}

/// Buffers of a device, and what they hold.
class Operands {
 public:
  explicit Operands(DevicePtr device)
      : device_(std::move(device)), src_(device_->allocate(kBytes)), dst_(device_->allocate(kBytes)) {}

  [[nodiscard]] std::unique_ptr<Launch> bind(const Kernel& kernel) const {
    const Operand src{src_.get()}, dst{dst_.get()};
    return kernel.bind({&src, 1}, {&dst, 1}, {});
  }
  /// Item i becomes i + first.
  void write(std::int32_t first) {
    std::vector<std::int32_t> values(kItems);
    std::iota(values.begin(), values.end(), first);
    device_->write(*src_, 0, std::as_bytes(std::span(values)));
  }
  [[nodiscard]] std::vector<std::int32_t> read() const {
    std::vector<std::int32_t> values(kItems);
    device_->read(*dst_, 0, std::as_writable_bytes(std::span(values)));
    return values;
  }

 private:
  static constexpr std::size_t kBytes = kItems * sizeof(std::int32_t);
  DevicePtr device_;
  BufferPtr src_, dst_;
};

/// Of an input that begins with `now`, where it began with `kept_of` when the first stage ran.
std::vector<std::int32_t> expected(std::int32_t now, std::int32_t kept_of) {
  std::vector<std::int32_t> values;
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(kItems); ++i) {
    values.push_back(i + now + 2 * (i + kept_of) + 2000 * (i % 32 + 32 + kept_of));
  }
  return values;
}

}  // namespace

TEST_CASE("a stage that runs once does so for each bound launch", "[opencl][launch]") {
  for (const DevicePtr& device : opencl_devices()) {
    INFO(device->info().id);
    const StagedKernel kernel = once_and_always(context_of(device));
    Operands operands(device);
    operands.write(5);
    const std::unique_ptr<Launch> first = operands.bind(kernel);
    for (const std::int32_t now : {5, 70, -3}) {
      operands.write(now);
      first->enqueue();
      first->enqueue();
      CHECK(operands.read() == expected(now, 5));
    }
    // Another launch of the same kernel has memory of its own, while the first one lives.
    operands.write(40);
    const std::unique_ptr<Launch> second = operands.bind(kernel);
    second->enqueue();
    CHECK(operands.read() == expected(40, 40));
    operands.write(8);
    first->enqueue();
    CHECK(operands.read() == expected(8, 5));
    second->enqueue();
    CHECK(operands.read() == expected(8, 40));
  }
}

TEST_CASE("packed arguments reach a kernel as memories and one struct", "[opencl][launch]") {
  // Numbers of 4 and of 8 bytes in turn, so that the struct has gaps.
  constexpr const char* kPacked = R"cl(
#define PACKED_NUMBERS(NUMBER)                                                                         \
  NUMBER(int, small) NUMBER(ulong, src_offset) NUMBER(uint, count) NUMBER(long, large) NUMBER(float, real) \
  NUMBER(ulong, dst_offset) NUMBER(ulong, huge) NUMBER(ulong, kept_offset) NUMBER(uint, last)
typedef struct { PACKED_NUMBERS(NUMBER_MEMBER) } packed_numbers;
__kernel void packed(__global const long *src, __global const long *table, __global long *dst, __global long *kept,
                     const packed_numbers numbers, uint beside) {
  PACKED_NUMBERS(NUMBER_CONSTANT)
  const long values[10] = {small, src[src_offset], count, large, as_int(real), table[1], (long)huge, last, beside,
                           (long)kept_offset};
  for (int i = 0; i < 10; ++i) dst[dst_offset + i] = values[i];
  kept[kept_offset] = 0;
}
)cl";
  for (const DevicePtr& device : opencl_devices()) {
    INFO(device->info().id);
    Context& context = context_of(device);
    const std::vector<std::int64_t> table{7, 8}, src{0, 0, 11};
    constexpr std::size_t kBytes = sizeof(std::int64_t);
    const PackedArguments packed{{std::int32_t{-3}, input(0, kBytes), std::uint32_t{4000000000U},
                                  std::int64_t{-5000000000}, constant_table<std::int64_t>(context, table), 1.5F,
                                  output(0, kBytes), std::uint64_t{1} << 63U, further(kept(4 * kBytes), kBytes, kBytes),
                                  std::uint32_t{9}}};
    const StagedKernel kernel(
        context, "packed",
        {Stage{
            context.program_from(kernel_source("shared/numbers.h") + kPacked), "packed", {packed, std::uint32_t{12}}}});
    const BufferPtr from = device->allocate(src.size() * kBytes), to = device->allocate(12 * kBytes);
    device->write(*from, 0, std::as_bytes(std::span(src)));
    const Operand input_at{from.get(), 2 * kBytes}, output_at{to.get(), kBytes};
    kernel.bind({&input_at, 1}, {&output_at, 1}, {})->enqueue();
    std::vector<std::int64_t> values(10);
    device->read(*to, kBytes, std::as_writable_bytes(std::span(values)));
    CHECK(values == std::vector<std::int64_t>{-3, 11, 4000000000, -5000000000, std::bit_cast<std::int32_t>(1.5F), 8,
                                              std::numeric_limits<std::int64_t>::min(), 9, 12, 1});
  }
}

TEST_CASE("packed arguments in others are structs that share the memories of the first", "[opencl][launch]") {
  const std::string kTwo = R"cl(
#define MEMBER_NUMBERS(NUMBER) NUMBER(ulong, src_offset) NUMBER(ulong, kept_offset) NUMBER(uint, factor)
typedef struct { MEMBER_NUMBERS(NUMBER_MEMBER) } member_numbers;
typedef struct { member_numbers first, second; } launch_numbers;
#define TWO_MEMORIES(MEMORY) MEMORY(const int *, src) MEMORY(int *, kept)
__kernel void two(MEMORY_PARAMETERS(TWO_MEMORIES) const launch_numbers numbers, __global int *dst, ulong dst_offset) {
  DECLARE_MEMORIES(TWO_MEMORIES)
  kept[numbers.first.kept_offset] = src[numbers.first.src_offset] * (int)numbers.first.factor;
  kept[numbers.second.kept_offset] = src[numbers.second.src_offset] * (int)numbers.second.factor;
  dst[dst_offset] = kept[numbers.first.kept_offset] + 100 * kept[numbers.second.kept_offset];
}
)cl";
  for (const DevicePtr& device : opencl_devices()) {
    INFO(device->info().id);
    Context& context = context_of(device);
    const opencl::KeptArgument memory = opencl::kept(2 * sizeof(int));
    std::vector<Argument> members;
    for (const std::uint32_t i : {0U, 1U}) {
      opencl::BufferArgument src = opencl::input(0);
      src.extra_bytes = i * 2 * sizeof(int);
      PackedArguments member{{src, further(memory, i * sizeof(int)), std::uint32_t{3} + i}};
      if (i > 0) make_offsets(member);
      members.emplace_back(std::move(member));
    }
    const StagedKernel kernel(context, "two",
                              {Stage{context.program_from(kernel_source("shared/numbers.h") + kTwo),
                                     "two",
                                     {PackedArguments{std::move(members)}, output(0)}}});
    const std::vector<std::int32_t> src{5, 0, 7};
    const BufferPtr from = device->allocate(src.size() * sizeof(int)), to = device->allocate(sizeof(int));
    device->write(*from, 0, std::as_bytes(std::span(src)));
    const Operand input_at{from.get(), 0}, output_at{to.get(), 0};
    kernel.bind({&input_at, 1}, {&output_at, 1}, {})->enqueue();
    std::int32_t value = 0;
    device->read(*to, 0, std::as_writable_bytes(std::span(&value, 1)));
    CHECK(value == 15 + 100 * 28);
  }
}

TEST_CASE("a stage that runs once does so again after a run that failed", "[opencl][launch]") {
  for (const DevicePtr& device : opencl_devices()) {
    INFO(device->info().id);
    bool fails = false;
    std::vector<StagedKernel::AnyStage> stages = once_and_always(context_of(device)).stages();
    stages.push_back(LibraryStage{[&](std::span<const Operand>, std::span<const Operand>, Operand) {
      if (fails) throw DeviceError("as asked");
    }});
    const StagedKernel kernel(context_of(device), "failing", std::move(stages));
    Operands operands(device);
    const std::unique_ptr<Launch> launch = operands.bind(kernel);
    operands.write(5);
    launch->enqueue();
    fails = true;
    CHECK_THROWS_AS(launch->enqueue(), DeviceError);
    fails = false;
    operands.write(70);
    launch->enqueue();
    CHECK(operands.read() == expected(70, 70));
    operands.write(-3);
    launch->enqueue();
    CHECK(operands.read() == expected(-3, 70));
  }
}

TEST_CASE("the memory of kernels counts as allocated", "[opencl][launch][memory]") {
  for (const DevicePtr& device : opencl_devices()) {
    INFO(device->info().id);
    Context& context = context_of(device);
    const StagedKernel kernel = once_and_always(context);
    const Operands operands(device);
    const std::size_t before = device->allocated();
    {
      const std::unique_ptr<Launch> first = operands.bind(kernel), second = operands.bind(kernel);
      CHECK(device->allocated() == before + 2 * kItems * sizeof(std::int32_t));
      CHECK(device->peak_allocated() >= device->allocated());
    }
    CHECK(device->allocated() == before);
    {
      const std::vector<std::int32_t> entries(100, 7);
      const auto table = constant_table<std::int32_t>(context, entries);
      CHECK(device->allocated() == before + 100 * sizeof(std::int32_t));
    }
    CHECK(device->allocated() == before);
  }
}

}  // namespace concord::test
