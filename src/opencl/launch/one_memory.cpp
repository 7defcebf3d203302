// The check that kernels find memory by its distance from other memory.
#include "concord/opencl/launch/one_memory.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <utility>

#include "concord/core/debug_options.hpp"
#include "concord/opencl/driver/status.hpp"
#include "concord/opencl/launch/buffer.hpp"
#include "concord/opencl/launch/context.hpp"
#include "concord/opencl/launch/stage.hpp"

namespace concord::opencl {
namespace {

constexpr std::size_t kCheckedBytes = 4096;

/// Whether the addresses of the buffers are there, and none lies in another.
bool are_apart(Context& context, std::span<const std::unique_ptr<OpenClBuffer>> buffers) {
  std::vector<std::uint64_t> found;
  for (const auto& buffer : buffers) found.push_back(buffer->address(context.addresses()));
  std::ranges::sort(found);
  for (std::size_t i = 1; i < found.size(); ++i) {
    if (found[i] - found[i - 1] < kCheckedBytes) return false;
  }
  return found.front() != 0;
}

/// A kernel that receives one buffer writes to two others.
bool finds_memories(Context& context) {
  constexpr std::size_t kPlace = 16;
  std::array<std::unique_ptr<OpenClBuffer>, 3> buffers;
  for (std::unique_ptr<OpenClBuffer>& buffer : buffers) {
    cl_int status = CL_SUCCESS;
    MemoryHandle memory(clCreateBuffer(context.context().get(), CL_MEM_READ_WRITE, kCheckedBytes, nullptr, &status));
    check_allocation(status, "clCreateBuffer", context.name());
    buffer = std::make_unique<OpenClBuffer>(std::move(memory), kCheckedBytes, context.accounting());
  }
  if (!are_apart(context, buffers)) return false;
  const StagedKernel kernel(context, "check of one memory",
                            {Stage{context.program("shared/addresses.cl", {"ONE_MEMORY"}),
                                   "write_by_offsets",
                                   {PackedArguments{{output(0), output(1), output(2), 11U, 22U}}},
                                   {1, 1, 1},
                                   {1, 1, 1}}});
  std::array<Operand, 3> operands;
  for (std::size_t i = 0; i < operands.size(); ++i) operands[i] = {buffers[i].get(), i * kPlace};
  kernel.bind({}, operands, {})->enqueue();
  std::array<std::uint32_t, 3> values{};
  for (std::size_t i = 1; i < values.size(); ++i) {
    check(clEnqueueReadBuffer(context.queue().get(), buffers[i]->memory(), CL_TRUE, i * kPlace, sizeof(cl_uint),
                              &values[i], 0, nullptr, nullptr),
          "clEnqueueReadBuffer", context.name());
  }
  return values[1] == 11 && values[2] == 22;
}

bool takes_one_memory(Context& context) {
  if (const auto choice = debug_choice("memories", {"one", "each"})) return *choice == "one";
  const bool is_wide = context.device().get_info<cl_uint>(CL_DEVICE_ADDRESS_BITS) == 64;
  return context.limits().is_nvidia && is_wide &&
         context.remembered("one memory", [&] { return finds_memories(context); });
}

}  // namespace

std::vector<std::string> memory_definitions(Context& context) {
  if (takes_one_memory(context)) return {"ONE_MEMORY"};
  return {};
}

}  // namespace concord::opencl
