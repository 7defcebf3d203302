// Kernels that receive one memory and find the others by offsets from it.
#include "concord/opencl/launch/one_memory.hpp"

#include <array>

#include "concord/compile/program.hpp"
#include "concord/opencl/launch/buffer.hpp"
#include "concord/opencl/launch/constant_table.hpp"
#include "concord/opencl/program/source.hpp"
#include "concord/ops/normalise.hpp"
#include "concord/ops/reduce.hpp"
#include "concord/ops/softmax.hpp"
#include "opencl/context_of.hpp"
#include "opencl/opencl_test.hpp"
#include "ops/op_test.hpp"

namespace concord::test {
namespace {

using namespace opencl;

constexpr const char* kAdd = R"cl(
#define ADD_MEMORIES(MEMORY) MEMORY(const int *restrict, a) MEMORY(const int *restrict, b)
#define RESULT(MEMORY) MEMORY(int *, dst)
#define ADD_NUMBERS(NUMBER) \
  NUMBER(ulong, a_offset) NUMBER(ulong, b_offset) TABLE_NUMBER(NUMBER, table) NUMBER(ulong, dst_offset) NUMBER(int, more)
typedef struct { ADD_NUMBERS(NUMBER_MEMBER) } add_numbers;
__kernel void add(MEMORY_PARAMETERS(ADD_MEMORIES) TABLE_PARAMETER(const int *restrict, table) FURTHER_PARAMETERS(RESULT)
                  const add_numbers numbers, int beside) {
  ADD_NUMBERS(NUMBER_CONSTANT)
  DECLARE_MEMORIES(ADD_MEMORIES)
  DECLARE_MEMORIES(RESULT)
  DECLARE_TABLE(const int *restrict, table)
  const int i = (int)get_global_id(0);
  dst[dst_offset + i] = a[a_offset + i] + b[b_offset + i] + table[1] + more + beside;
}
)cl";

/// dst = a + b + 5000 + 300 + 20, each from its second element on.
StagedKernel add_kernel(Context& context) {
  const auto table = constant_table<std::int32_t>(context, std::array<std::int32_t, 2>{-1, 5000});
  return {context,
          "add",
          {Stage{context.program_from(kernel_source("shared/numbers.h") + kAdd, memory_definitions(context)),
                 "add",
                 {PackedArguments{{input(0), input(1), table, output(0), std::int32_t{300}}}, std::int32_t{20}},
                 {3, 1, 1},
                 {1, 1, 1}}}};
}

/// Those that are known to keep buffers where they are.
std::vector<DevicePtr> devices_that_keep_places() {
  std::vector<DevicePtr> found = opencl_devices();
  std::erase_if(found, [](const DevicePtr& device) {
    return device->info().kind == DeviceKind::gpu && device->info().vendor.find("NVIDIA") == std::string::npos;
  });
  return found;
}

BufferPtr buffer_of(Device& device, const std::vector<std::int32_t>& values) {
  BufferPtr buffer = device.allocate(values.size() * sizeof(std::int32_t));
  device.write(*buffer, 0, std::as_bytes(std::span(values)));
  return buffer;
}

}  // namespace

TEST_CASE("a kernel with one memory finds operands and tables in others", "[opencl][launch]") {
  for (const DevicePtr& device : devices_that_keep_places()) {
    for (const char* const memories : {"one", "each"}) {
      INFO(memories << " on " << device->info().id);
      const DebugOption option("memories", memories);
      const StagedKernel kernel = add_kernel(context_of(device));
      const BufferPtr a = buffer_of(*device, {0, 1, 2, 3}), b = buffer_of(*device, {0, 10, 20, 30});
      const BufferPtr to = buffer_of(*device, {7, 7, 7, 7});
      const std::array<Operand, 2> inputs{Operand{a.get(), 4}, Operand{b.get(), 4}};
      const Operand result{to.get(), 4};
      kernel.bind(inputs, {&result, 1}, {})->enqueue();
      std::vector<std::int32_t> values(4);
      device->read(*to, 0, std::as_writable_bytes(std::span(values)));
      CHECK(values == std::vector<std::int32_t>{7, 5331, 5342, 5353});
      // An operand alone has no memory where it has no elements.
      const std::array<Operand, 2> with_none{Operand{}, Operand{b.get(), 4}};
      CHECK_NOTHROW(kernel.bind(with_none, {&result, 1}, {}));
    }
  }
}

TEST_CASE("a kernel with one memory may have packed numbers alone", "[opencl][launch]") {
  const std::string source = R"cl(
#define NONE(MEMORY)
#define SUM_NUMBERS(NUMBER) NUMBER(int, a) NUMBER(int, b)
typedef struct { SUM_NUMBERS(NUMBER_MEMBER) } sum_numbers;
__kernel void sum_of_numbers(MEMORY_PARAMETERS(NONE) const sum_numbers numbers, __global int *dst, ulong dst_offset) {
  dst[dst_offset] = numbers.a + numbers.b;
}
)cl";
  for (const DevicePtr& device : devices_that_keep_places()) {
    for (const char* const memories : {"one", "each"}) {
      INFO(memories << " on " << device->info().id);
      const DebugOption option("memories", memories);
      Context& context = context_of(device);
      const StagedKernel kernel(
          context, "sum",
          {Stage{context.program_from(kernel_source("shared/numbers.h") + source, memory_definitions(context)),
                 "sum_of_numbers",
                 {PackedArguments{{std::int32_t{40}, std::int32_t{2}}}, output(0)},
                 {1, 1, 1},
                 {1, 1, 1}}});
      const BufferPtr to = buffer_of(*device, {0, 0});
      const Operand result{to.get(), 4};
      kernel.bind({}, {&result, 1}, {})->enqueue();
      std::int32_t value = 0;
      device->read(*to, 4, std::as_writable_bytes(std::span(&value, 1)));
      CHECK(value == 42);
    }
  }
}

TEST_CASE("a buffer that a kernel finds by its address is kept until the kernel has run", "[opencl][launch]") {
  for (const DevicePtr& device : devices_that_keep_places()) {
    INFO(device->info().id);
    const DebugOption option("memories", "one");
    const StagedKernel kernel = add_kernel(context_of(device));
    const BufferPtr to = buffer_of(*device, {0, 0, 0, 0});
    for (int turn = 0; turn < 20; ++turn) {
      BufferPtr a = buffer_of(*device, {0, turn, 2, 3}), b = buffer_of(*device, {0, 10, 20, 30});
      const std::array<Operand, 2> inputs{Operand{a.get(), 4}, Operand{b.get(), 4}};
      const Operand result{to.get(), 4};
      kernel.bind(inputs, {&result, 1}, {})->enqueue();
      a.reset();
      b.reset();
      const BufferPtr over_a = buffer_of(*device, {-1, -1, -1, -1}), over_b = buffer_of(*device, {-1, -1, -1, -1});
      std::int32_t value = 0;
      device->read(*to, 4, std::as_writable_bytes(std::span(&value, 1)));
      CHECK(value == 5330 + turn);
    }
  }
}

TEST_CASE("products, sums and groups of formulas have the same bits with one memory and with each",
          "[opencl][launch]") {
  const auto build = [](const std::vector<Value>& x) {
    const Value hidden = relu(matmul(x[0], x[1]) + x[2]), loss = mean(conv2d(reshape(hidden, {2, 4, 6, 5}), x[3]));
    std::vector<Value> results{hidden, loss};
    for (const Value& d : gradient(loss, std::vector{x[0], x[1], x[2], x[3]})) {
      results.push_back(d);
      results.push_back(sum(d));
    }
    return results;
  };
  const std::vector<Input> inputs{
      {normal({6, 33}, 1)}, {normal({33, 40}, 2)}, {normal({40}, 3)}, {normal({3, 4, 3, 3}, 4)}};
  for (const DevicePtr& device : devices_that_keep_places()) {
    INFO(device->info().id);
    const DebugOption kernels("kernels", "gpu");
    std::vector<std::vector<Tensor>> found;
    for (const char* const memories : {"one", "each"}) {
      const DebugOption option("memories", memories);
      found.push_back(run(Device::open(device->info().id), inputs, build));
    }
    for (std::size_t i = 0; i < found[0].size(); ++i) CHECK(difference(found[0][i], found[1][i]).empty());
  }
}

TEST_CASE("a training step in 16 bits has the same bits with one memory and with each", "[opencl][launch]") {
  const auto build = [](const std::vector<Value>& x) {
    const Value image = conv2d(x[0], x[1], {.stride = {2, 2}, .padding = {1, 1}});
    const Value hidden = relu(batch_norm(image, x[2], x[3]).dst);
    const Value logits = matmul(reshape(hidden, {2, -1}), x[4]);
    const Value loss = mean(cross_entropy_rows(logits, x[5]));
    std::vector<Value> results{loss};
    for (const Value& d : gradient(loss, std::vector{x[0], x[1], x[2], x[3], x[4]})) results.push_back(d);
    return results;
  };
  const std::vector<Input> inputs{
      {normal({2, 64, 28, 28}, 1)}, {normal({128, 64, 3, 3}, 2, 0.05)},     {uniform({128}, 3, 0.5, 2)},
      {normal({128}, 4)},           {normal({128 * 14 * 14, 10}, 5, 0.01)}, {uniform({2, 10}, 6, 0, 0.2)}};
  for (const DevicePtr& device : devices_that_keep_places()) {
    INFO(device->info().id);
    std::vector<std::vector<Tensor>> found;
    for (const char* const memories : {"one", "each"}) {
      const DebugOption option("memories", memories);
      found.push_back(run(Device::open(device->info().id), inputs, build, {.precision = Precision::bf16}));
    }
    for (std::size_t i = 0; i < found[0].size(); ++i) CHECK(difference(found[0][i], found[1][i]).empty());
  }
}

}  // namespace concord::test
