// Matrix multiplications through CLBlast. CLBlast uses our workspace as temporary memory and so allocates nothing. One
// mutex guards all calls: CLBlast initialises its tables at first use and is not thread-safe.
#include "concord/opencl/gemm/clblast.hpp"

#include <clblast.h>
#include <fmt/format.h>

#include <memory>
#include <mutex>

#include "concord/opencl/driver/status.hpp"
#include "concord/opencl/gemm/implementation.hpp"
#include "concord/opencl/launch/buffer.hpp"

namespace concord::opencl {
namespace {

std::mutex& clblast_mutex() {
  static std::mutex mutex;
  return mutex;
}

/// CLBlast never frees its programs and their contexts. This class clears them with the last device that used CLBlast.
class ClblastPrograms {
 public:
  ClblastPrograms() = default;
  ClblastPrograms(const ClblastPrograms&) = delete;
  ClblastPrograms& operator=(const ClblastPrograms&) = delete;
  ~ClblastPrograms() {
    if (driver_is_gone()) return;
    const std::scoped_lock lock(clblast_mutex());
    clblast::ClearCache();
  }

  static std::shared_ptr<const ClblastPrograms> instance() {
    static std::mutex mutex;
    static std::weak_ptr<const ClblastPrograms> last;
    const std::scoped_lock lock(mutex);
    auto programs = last.lock();
    if (!programs) last = programs = std::make_shared<const ClblastPrograms>();
    return programs;
  }
};

void check_clblast(clblast::StatusCode status, const Context& context) {
  check(static_cast<cl_int>(status), "a matrix multiplication by CLBlast", context.name());
}

clblast::Transpose transpose_of(bool transposed) {
  return transposed ? clblast::Transpose::kYes : clblast::Transpose::kNo;
}

std::size_t base_alignment(const Context& context) {
  return context.device().get_info<cl_uint>(CL_DEVICE_MEM_BASE_ADDR_ALIGN) / 8;
}

/// Temporary memory for CLBlast, which accepts no offset for it. Commands that use it keep it until they have ended.
MemoryHandle part_of(cl_mem parent, std::size_t origin, std::size_t bytes, const Context& context) {
  const cl_buffer_region region{origin, bytes};
  cl_int status = CL_SUCCESS;
  MemoryHandle part(clCreateSubBuffer(parent, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region, &status));
  check_allocation(status, "clCreateSubBuffer", context.name());
  return part;
}

struct Place {
  cl_mem memory;
  std::size_t element;
};
Place place_of(const BufferArgument& argument, std::span<const Operand> inputs, std::span<const Operand> outputs,
               const Operand& scratch) {
  const Operand& operand = argument.source == BufferArgument::Source::input    ? inputs[argument.index]
                           : argument.source == BufferArgument::Source::output ? outputs[argument.index]
                                                                               : scratch;
  return {memory_of(operand.buffer), (operand.offset + argument.extra_bytes) / sizeof(float)};
}

std::size_t temporary_bytes(Context& context, const ClblastProduct& p) {
  cl_command_queue queue = context.queue().get();
  std::size_t bytes = 0;
  const std::scoped_lock lock(clblast_mutex());
  // Operands at unaligned offsets need the most memory; the actual offsets are known only when the kernel is bound.
  check_clblast(clblast::GemmTempBufferSize<float>(clblast::Layout::kRowMajor, transpose_of(p.transpose_a),
                                                   transpose_of(p.transpose_b), p.m, p.n, p.k, 1, p.lda, 1, p.ldb, 1,
                                                   p.ldc, &queue, bytes),
                context);
  return bytes;
}

}  // namespace

std::size_t clblast_workspace(Context& context, const ClblastProduct& product) {
  const std::size_t bytes = temporary_bytes(context, product);
  return bytes == 0 ? 0 : bytes + base_alignment(context);
}

LibraryStage clblast_stage(Context& context, const ClblastProduct& product) {
  context.keep(ClblastPrograms::instance());
  const std::size_t bytes = temporary_bytes(context, product), alignment = base_alignment(context);
  return {[&context, p = product, bytes, alignment](std::span<const Operand> inputs, std::span<const Operand> outputs,
                                                    Operand scratch) {
    const Place a = place_of(p.a, inputs, outputs, scratch), b = place_of(p.b, inputs, outputs, scratch),
                c = place_of(p.c, inputs, outputs, scratch);
    MemoryHandle temporary;
    if (bytes != 0) {
      const std::size_t begin = (scratch.offset + p.workspace_begin + alignment - 1) / alignment * alignment;
      temporary = part_of(memory_of(scratch.buffer), begin, bytes, context);
    }
    cl_command_queue queue = context.queue().get();
    // CLBlast returns the event of its last kernel. With temporary memory it runs several kernels, and the host
    // measures their time.
    cl_event* event = context.next_event("clblast");
    if (temporary.get() != nullptr) event = nullptr;
    const std::scoped_lock lock(clblast_mutex());
    check_clblast(
        clblast::Gemm<float>(clblast::Layout::kRowMajor, transpose_of(p.transpose_a), transpose_of(p.transpose_b), p.m,
                             p.n, p.k, 1.0F, a.memory, a.element, p.lda, b.memory, b.element, p.ldb, p.beta, c.memory,
                             c.element, p.ldc, &queue, event, temporary.get()),
        context);
  }};
}

namespace {

std::string_view clblast_refusal(const Context& context, const Gemm& gemm) {
  const Limits& limits = context.limits();
  if (gemm.a.is_patch || gemm.b.is_patch || gemm.a.block != 0 || gemm.b.block != 0 || gemm.c.block != 0) {
    return "an operand or the result is not a dense matrix";
  }
  if (!gemm.before.empty() || !gemm.epilogue.text.empty()) return "it has steps before it or an epilogue";
  if (gemm.m == 0 || gemm.n == 0 || gemm.k == 0) return "a size is 0";
  if (gemm.largest >= std::int64_t{1} << 31) return "an operand has 2^31 elements or more";
  if (limits.are_lowered || limits.max_work_group < 64 || limits.local_memory < 16384) {
    return "the device's work-groups or local memory are too small";
  }
  return kNoRefusal;
}

std::unique_ptr<Kernel> prepare_clblast(Context& context, const Gemm& gemm, std::string_view label) {
  const auto size = [](std::int64_t value) { return static_cast<std::size_t>(value); };
  ClblastProduct product;
  product.transpose_a = gemm.a.k != 1;
  product.transpose_b = gemm.b.along_k;
  product.m = size(gemm.m);
  product.n = size(gemm.n);
  product.k = size(gemm.k);
  // CLBlast refuses a stride shorter than a row, even where there is only one row.
  const std::int64_t row = gemm.m == 1 ? gemm.k : gemm.a.row;
  product.lda = size(product.transpose_a ? gemm.a.k : row);
  product.ldb = size(product.transpose_b ? gemm.b.n : gemm.b.k);
  product.ldc = size(gemm.c.row);
  product.a = gemm.a.buffer;
  product.b = gemm.b.buffer;
  product.c = gemm.c.buffer;
  product.workspace_begin = gemm.before_bytes;
  std::vector<StagedKernel::AnyStage> stages;
  for (std::int64_t z = 0; z < gemm.batch; ++z) {
    ClblastProduct one = product;
    one.a.extra_bytes += size(z * gemm.a.batch) * sizeof(float);
    one.b.extra_bytes += size(z * gemm.b.batch) * sizeof(float);
    one.c.extra_bytes += size(z * gemm.c.batch) * sizeof(float);
    stages.emplace_back(clblast_stage(context, one));
  }
  return std::make_unique<StagedKernel>(context, fmt::format("{} clblast", label), std::move(stages),
                                        gemm.before_bytes + clblast_workspace(context, product));
}

}  // namespace

extern const GemmImplementation kClblastGemm{.name = "clblast",
                                             .is_alternative_of = [](const Context&) { return true; },
                                             .refusal = clblast_refusal,
                                             .device_refusal = [](Context&, Precision) { return kNoRefusal; },
                                             .seconds = [](const Context&, const Gemm&) -> double { return INFINITY; },
                                             .prepare = prepare_clblast,
                                             .files = {}};

}  // namespace concord::opencl
