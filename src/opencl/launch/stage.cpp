// StagedKernel and its launch.
#include "concord/opencl/launch/stage.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <span>
#include <utility>

#include "concord/core/check.hpp"
#include "concord/opencl/driver/handle.hpp"
#include "concord/opencl/driver/status.hpp"
#include "concord/opencl/launch/buffer.hpp"
#include "concord/opencl/launch/context.hpp"

namespace concord::opencl {
namespace {

void require_valid(const Context& context, const std::string& kernel, const Stage& stage) {
  if (stage.local[0] == 0) return;
  const std::size_t items = stage.local[0] * stage.local[1] * stage.local[2];
  CONCORD_CHECK(items > 0 && items <= context.limits().max_work_group, DeviceError,
                "{} ({}): a work-group of {} items exceeds the limit {} of {}", kernel, stage.function, items,
                context.limits().max_work_group, context.name());
  for (std::size_t axis = 0; axis < 3; ++axis) {
    CONCORD_CHECK(stage.global[axis] % stage.local[axis] == 0, DeviceError,
                  "{} ({}): global size {} is not a multiple of the work-group's {}", kernel, stage.function,
                  stage.global[axis], stage.local[axis]);
  }
}

/// On a GPU the driver chooses the work-group. A CPU's driver compiles a kernel again for each size of a work-group, so
/// that the sizes should be few.
std::array<std::size_t, 3> group_of(const Context& context, const Stage& stage) {
  if (stage.local[0] != 0 || !context.limits().is_cpu) return stage.local;
  std::array<std::size_t, 3> group{1, 1, 1};
  std::size_t left = std::min<std::size_t>(64, context.limits().max_work_group);
  for (std::size_t axis = 0; axis < 3; ++axis) {
    for (const std::size_t items : {64, 8}) {
      if (items > left || stage.global[axis] % items != 0) continue;
      group[axis] = items;
      left /= items;
      break;
    }
  }
  return group;
}

/// Checks a kernel against the lowered limits, which the driver does not know. The driver itself enforces the limits of
/// the device.
void require_lowered_limits(const Context& context, cl_kernel kernel, const std::string& function) {
  if (!context.limits().are_lowered) return;
  cl_ulong bytes = 0;
  check(
      clGetKernelWorkGroupInfo(kernel, context.device().id(), CL_KERNEL_LOCAL_MEM_SIZE, sizeof bytes, &bytes, nullptr),
      "clGetKernelWorkGroupInfo of " + function, context.name());
  CONCORD_CHECK(bytes <= context.limits().local_memory, DeviceError,
                "kernel {} needs {} bytes of local memory; {} is limited to {}", function, bytes, context.name(),
                context.limits().local_memory);
}

bool is_empty(const StagedKernel::AnyStage& any) {
  const auto* stage = std::get_if<Stage>(&any);
  return stage != nullptr && (stage->global[0] == 0 || stage->global[1] == 0 || stage->global[2] == 0);
}

struct Operands {
  std::vector<Operand> inputs, outputs;
  Operand workspace;
  std::map<const std::size_t*, std::unique_ptr<OpenClBuffer>> kept = {};

  [[nodiscard]] const Operand& of(const BufferArgument& argument) const {
    switch (argument.source) {
      case BufferArgument::Source::input: return inputs.at(argument.index);
      case BufferArgument::Source::output: return outputs.at(argument.index);
      case BufferArgument::Source::workspace: break;
    }
    return workspace;
  }
};

/// The members of the struct that PackedArguments describes.
class PackedNumbers {
 public:
  template <class Number>
  void add(Number number) {
    add(std::bit_cast<std::array<std::byte, sizeof(Number)>>(number), sizeof number);
  }
  void add(PackedNumbers inner) {
    const std::size_t largest = inner.largest_;
    add(inner.take(), largest);
  }
  [[nodiscard]] std::vector<std::byte> take() {
    pad_to(largest_);
    return std::move(bytes_);
  }

 private:
  void add(std::span<const std::byte> bytes, std::size_t alignment) {
    pad_to(alignment);
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    largest_ = std::max(largest_, alignment);
  }
  void pad_to(std::size_t size) { bytes_.resize((bytes_.size() + size - 1) / size * size); }

  std::vector<std::byte> bytes_;
  std::size_t largest_ = 1;
};

/// Sets the arguments of one kernel in order; a buffer takes two places, packed ones as many as they have memories, and
/// one more.
class ArgumentSetter {
 public:
  ArgumentSetter(Context& context, cl_kernel kernel, const Operands& operands, const Stage& stage)
      : context_(context), kernel_(kernel), operands_(operands), stage_(stage) {}

  void operator()(const BufferArgument& argument) {
    const Operand& operand = operands_.of(argument);
    if (!argument.is_offset) set_memory(operand.buffer);
    (*this)(elements_to(operand.buffer, operand.offset + argument.extra_bytes, argument.element_size));
  }
  void operator()(const KeptArgument& argument) {
    const OpenClBuffer* const memory = operands_.kept.at(argument.bytes.get()).get();
    if (!argument.is_offset) set_memory(memory);
    (*this)(elements_to(memory, argument.offset, argument.element_size));
  }
  void operator()(const std::shared_ptr<const OpenClBuffer>& table) {
    set_memory(table.get());
    if (counts_from_one()) (*this)(elements_to(table.get(), 0, 1));
  }
  void operator()(const PackedArguments& packed) {
    PackedNumbers numbers;
    PackedNumbers* const outer = std::exchange(packed_, &numbers);
    for (const Argument& argument : packed.list) std::visit(*this, argument);
    if (outer == nullptr && counts_from_one() && first_ == nullptr) {  // no operand has elements
      constexpr cl_mem kNone = nullptr;
      set(sizeof kNone, &kNone);
    }
    packed_ = outer;
    if (outer != nullptr) {
      outer->add(std::move(numbers));
    } else {
      const std::vector<std::byte> bytes = numbers.take();
      set(bytes.size(), bytes.data());
    }
  }
  template <class Number>
  void operator()(const Number& number) {
    if (packed_ != nullptr) {
      packed_->add(number);
    } else {
      set(sizeof number, &number);
    }
  }

 private:
  [[nodiscard]] bool counts_from_one() const { return packed_ != nullptr && stage_.program.has_one_memory(); }
  void set_memory(const Buffer* buffer) {
    const cl_mem memory = memory_of(buffer);
    if (counts_from_one()) {
      if (first_ != nullptr || buffer == nullptr) return;
      first_ = buffer;
    }
    set(sizeof memory, &memory);
  }
  /// From the memory that the kernel receives to so many bytes behind the start of the buffer.
  [[nodiscard]] cl_long elements_to(const Buffer* buffer, std::size_t bytes, std::size_t element_size) {
    auto distance = static_cast<cl_long>(bytes);
    if (counts_from_one() && buffer != first_ && buffer != nullptr) {
      distance += static_cast<cl_long>(address_of(buffer) - address_of(first_));
    }
    const auto element = static_cast<cl_long>(element_size);
    CONCORD_CHECK(distance % element == 0, DeviceError, "{}: operand offset {} is not a multiple of {} bytes",
                  stage_.function, distance, element);
    return distance / element;
  }
  [[nodiscard]] std::uint64_t address_of(const Buffer* buffer) {
    return static_cast<const OpenClBuffer&>(*buffer).address(context_.addresses());
  }
  void set(std::size_t bytes, const void* value) {
    const cl_int status = clSetKernelArg(kernel_, next_, bytes, value);
    if (status != CL_SUCCESS) {
      check(status, fmt::format("setting argument {} of {}", next_, stage_.function), context_.name());
    }
    ++next_;
  }

  Context& context_;
  cl_kernel kernel_;
  const Operands& operands_;
  const Stage& stage_;
  cl_uint next_ = 0;
  const Buffer* first_ = nullptr;    // whose memory is the one for all
  PackedNumbers* packed_ = nullptr;  // where numbers go, if not to arguments of their own
};

/// A kernel object with its arguments set, or a library call.
struct BoundStage {
  KernelHandle kernel = {};
  std::string function = {};
  std::array<std::size_t, 3> global{}, local{};
  bool once = false;
  LibraryStage library = {};
};

class StagedLaunch final : public Launch {
 public:
  StagedLaunch(Context& context, const std::vector<StagedKernel::AnyStage>& stages, Operands operands)
      : context_(context), operands_(std::move(operands)) {
    for (const StagedKernel::AnyStage& any : stages) {
      if (const auto* library = std::get_if<LibraryStage>(&any)) {
        stages_.push_back({.library = *library});
      } else {
        const Stage& stage = std::get<Stage>(any);
        allocate_kept(stage);
        stages_.push_back({.kernel = bind(stage),
                           .function = stage.function,
                           .global = stage.global,
                           .local = stage.local,
                           .once = stage.once});
      }
    }
  }

  void enqueue() override {
    // A run that fails half-way leaves kept memory in any state: the next one runs the stages of `once` again.
    const bool is_begun = std::exchange(has_run_, false);
    for (const BoundStage& stage : stages_) {
      if (stage.once && is_begun) continue;
      if (stage.library.call) {
        stage.library.call(operands_.inputs, operands_.outputs, operands_.workspace);
        continue;
      }
      const cl_int status = clEnqueueNDRangeKernel(
          context_.queue().get(), stage.kernel.get(), 3, nullptr, stage.global.data(),
          stage.local[0] == 0 ? nullptr : stage.local.data(), 0, nullptr, context_.next_event(stage.function));
      if (status != CL_SUCCESS) check(status, "enqueueing kernel " + stage.function, context_.name());
    }
    has_run_ = true;
  }

 private:
  void allocate_kept(const Stage& stage) {
    for_each_argument(stage.arguments, [&](const Argument& argument) {
      const auto* const kept = std::get_if<KeptArgument>(&argument);
      if (kept == nullptr || operands_.kept.contains(kept->bytes.get())) return;
      cl_int status = CL_SUCCESS;
      MemoryHandle memory(clCreateBuffer(context_.context().get(), CL_MEM_READ_WRITE, *kept->bytes, nullptr, &status));
      check_allocation(status, "clCreateBuffer", context_.name());
      operands_.kept.emplace(kept->bytes.get(),
                             std::make_unique<OpenClBuffer>(std::move(memory), *kept->bytes, context_.accounting()));
    });
  }

  KernelHandle bind(const Stage& stage) const {
    cl_int status = CL_SUCCESS;
    KernelHandle kernel(clCreateKernel(stage.program.get(), stage.function.c_str(), &status));
    if (status != CL_SUCCESS) check(status, "creating kernel " + stage.function, context_.name());
    require_lowered_limits(context_, kernel.get(), stage.function);
    ArgumentSetter setter(context_, kernel.get(), operands_, stage);
    for (const Argument& argument : stage.arguments) std::visit(setter, argument);
    return kernel;
  }

  Context& context_;
  Operands operands_;
  std::vector<BoundStage> stages_;
  bool has_run_ = false;
};

}  // namespace

StagedKernel::StagedKernel(Context& context, std::string name, std::vector<AnyStage> stages,
                           std::size_t workspace_bytes)
    : context_(context), name_(std::move(name)), stages_(std::move(stages)), workspace_(workspace_bytes) {
  std::erase_if(stages_, is_empty);
  for (AnyStage& any : stages_) {
    auto* const stage = std::get_if<Stage>(&any);
    if (stage == nullptr) continue;
    stage->local = group_of(context_, *stage);
    require_valid(context_, name_, *stage);
  }
}

StagedKernel::~StagedKernel() {
  if (driver_is_gone()) static_cast<void>(new std::vector<AnyStage>(std::move(stages_)));
}

std::unique_ptr<Launch> StagedKernel::bind(std::span<const Operand> inputs, std::span<const Operand> outputs,
                                           Operand workspace) const {
  return std::make_unique<StagedLaunch>(
      context_, stages_, Operands{{inputs.begin(), inputs.end()}, {outputs.begin(), outputs.end()}, workspace});
}

PreparedKernel prepared(const KernelRequest& request, std::unique_ptr<Kernel> kernel) {
  return {std::move(kernel), std::vector<Layout>(request.inputs.size()), std::vector<Layout>(request.outputs.size())};
}

}  // namespace concord::opencl
