// What the families of this backend share: the two kinds of kernel (a oneDNN primitive, a loop of our own), threads,
// and the table that each family enters itself into, in a function such as add_scan at the end of its file.
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bf16_simd.hpp"
#include "concord/device/device.hpp"
#include "concord/device/kernel_table.hpp"
#include "layout.hpp"

namespace concord::cpu {

class CpuAlternatives;

/// What prepare functions get besides the request.
struct Backend {
  int threads = 1;
};

/// Host memory, aligned to 64 bytes.
class HostBuffer final : public Buffer {
 public:
  HostBuffer(std::size_t bytes, std::shared_ptr<std::byte[]> data) : Buffer(bytes), data_(std::move(data)) {}
  [[nodiscard]] std::byte* data() const { return data_.get(); }

 private:
  std::shared_ptr<std::byte[]> data_;
};

/// The address of an operand; null for an operand without a buffer.
[[nodiscard]] std::byte* address(const Operand& operand);

/// Binds operand `index` of a kernel to argument `argument` (DNNL_ARG_…) of a primitive.
struct PrimitiveArgument {
  enum class Kind : std::uint8_t { input, output };
  int argument;
  Kind kind;
  std::size_t index;
  Desc desc;
};
[[nodiscard]] inline PrimitiveArgument input_argument(int argument, std::size_t index, const Desc& desc) {
  return {argument, PrimitiveArgument::Kind::input, index, desc};
}
[[nodiscard]] inline PrimitiveArgument output_argument(int argument, std::size_t index, const Desc& desc) {
  return {argument, PrimitiveArgument::Kind::output, index, desc};
}

/// Whether it is one of oneDNN's reference loops, which are far slower than compiled kernels.
[[nodiscard]] inline bool is_reference(const Kernel& kernel) { return kernel.name().find("ref") != std::string::npos; }

/// A kernel that executes one primitive.
[[nodiscard]] std::unique_ptr<Kernel> primitive_kernel(const dnnl::primitive& primitive, const Desc& scratchpad,
                                                       std::string implementation,
                                                       std::vector<PrimitiveArgument> arguments);
template <class PrimitiveDesc>
[[nodiscard]] std::unique_ptr<Kernel> primitive_kernel(const dnnl::primitive& primitive, const PrimitiveDesc& desc,
                                                       std::vector<PrimitiveArgument> arguments) {
  return primitive_kernel(primitive, desc.scratchpad_desc(), desc.impl_info_str(), std::move(arguments));
}

/// prepare(bf16) where values are stored so with this precision and oneDNN has a compiled kernel for it, else
/// prepare(f32).
template <class Prepare>
[[nodiscard]] PreparedKernel in_narrowest_type(Precision precision, const Prepare& prepare) {
  if (stores_bf16(precision)) {
    try {
      PreparedKernel prepared = prepare(DType::bf16);
      if (!is_reference(*prepared.kernel)) return prepared;
    } catch (const NotSupported&) {
      // The precision is a permission.
    }
  }
  return prepare(DType::f32);
}

/// Rearranges a tensor between two descriptors of the same dimensions.
[[nodiscard]] std::unique_ptr<Kernel> reorder_kernel(const Desc& from, const Desc& to);

/// The operands of a loop kernel.
class Pointers {
 public:
  Pointers(std::span<const Operand> inputs, std::span<const Operand> outputs, const Operand& workspace);
  template <class T>
  [[nodiscard]] const T* input(std::size_t i) const {
    return reinterpret_cast<const T*>(inputs_[i]);
  }
  template <class T>
  [[nodiscard]] T* output(std::size_t i) const {
    return reinterpret_cast<T*>(outputs_[i]);
  }
  template <class T>
  [[nodiscard]] T* workspace() const {
    return reinterpret_cast<T*>(workspace_);
  }

 private:
  std::vector<const std::byte*> inputs_;
  std::vector<std::byte*> outputs_;
  std::byte* workspace_;
};

/// A kernel that calls `loop`, which must not allocate.
using Loop = std::function<void(const Pointers&)>;
[[nodiscard]] std::unique_ptr<Kernel> loop_kernel(std::string name, std::size_t workspace, Loop loop);

/// The loop run(a number of the stored type, operands), for bf16 or f32.
template <class Run>
[[nodiscard]] Loop in_stored_type(DType stored, const Run& run) {
  if (stored == DType::bf16) return [run](const Pointers& pointers) { run(Bf16(), pointers); };
  return [run](const Pointers& pointers) { run(float(), pointers); };
}

/// A kernel that runs `first`, then `loop` over the same operands; the loop has no workspace.
[[nodiscard]] std::unique_ptr<Kernel> followed_by(std::unique_ptr<Kernel> first, std::string name, Loop loop);

/// A kernel of a primitive that adds its result to what lies in output 0: to the `bytes` of input `operand`, which are
/// copied there first unless output 0 lies over it.
[[nodiscard]] std::unique_ptr<Kernel> adding_to(std::unique_ptr<Kernel> primitive, std::size_t operand,
                                                std::size_t bytes);

/// A kernel over row-major operands only.
[[nodiscard]] PreparedKernel all_plain(const KernelRequest& request, std::unique_ptr<Kernel> kernel);

/// No exception may leave a parallel region. The first one is kept and thrown in the thread that began the region.
class FirstException {
 public:
  template <class Work>
  void of(const Work& work) {
    try {
      work();
    } catch (...) {
      if (!taken_.exchange(true)) error_ = std::current_exception();
    }
  }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::atomic<bool> taken_ = false;
  std::exception_ptr error_;
};

/// function(i) for i in [0, count), in parts of fixed assignment to threads; on this thread alone unless `parallel`.
template <class Function>
void parallel_for(std::int64_t count, int threads, bool parallel, const Function& function) {
  if (!parallel || threads == 1) {
    for (std::int64_t i = 0; i < count; ++i) function(i);
    return;
  }
  FirstException first;
#pragma omp parallel for schedule(static) num_threads(threads)
  for (std::int64_t i = 0; i < count; ++i) first.of([&] { function(i); });
  first.rethrow();
}

/// function(part, begin, end) for `threads` consecutive parts of [0, count), or for one part unless `parallel`.
template <class Function>
void parallel_parts(std::int64_t count, int threads, bool parallel, const Function& function) {
  if (!parallel || threads == 1) return function(0, std::int64_t{0}, count);
  const std::int64_t parts = threads;
  FirstException first;
#pragma omp parallel for schedule(static) num_threads(threads)
  for (std::int64_t part = 0; part < parts; ++part) {
    first.of([&] { function(part, count * part / parts, count * (part + 1) / parts); });
  }
  first.rethrow();
}

/// With fewer elements than this, waking threads is not worth it.
inline constexpr std::int64_t kParallelElements = 16384;

using Kernels = KernelTable<Backend>;
/// Calls the add_… function of every family (cmake/ConcordFamilies.cmake).
void add_families(Kernels& kernels);
[[nodiscard]] const Kernels& kernel_table();

}  // namespace concord::cpu
