// The CPU as a device: host memory, work done at once by the calling thread and OpenMP's, kernels from oneDNN and our
// own loops. What the registry opens as "cpu".
#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <future>
#include <new>
#include <optional>

#include "alternatives.hpp"
#include "concord/core/check.hpp"
#include "concord/core/host_memory.hpp"
#include "concord/core/platform.hpp"
#include "concord/device/fresh_memory.hpp"
#include "concord/device/registry.hpp"
#include "epilogue.hpp"
#include "full_team.hpp"
#include "kernels.hpp"
#include "signals.hpp"
#include "threads.hpp"

namespace concord::cpu {
namespace {

/// The request without permission to round, and with operands in fp32.
KernelRequest in_fp32(KernelRequest request) {
  request.precision = Precision::fp32;
  for (std::size_t i = 0; i < request.inputs.size(); ++i) {
    Layout& layout = request.input_layouts[i];
    if (layout && layout->bytes() < request.inputs[i].bytes()) layout = nullptr;  // stored in 16 bits
  }
  return request;
}

constexpr std::align_val_t kAlignment{64};

std::shared_ptr<std::byte[]> host_memory(std::size_t bytes) {
  auto* raw = static_cast<std::byte*>(::operator new[](std::max<std::size_t>(bytes, 1), kAlignment, std::nothrow));
  CONCORD_CHECK(raw != nullptr, OutOfMemory, "no host memory for {} bytes; the machine has {}", bytes,
                physical_memory_bytes());
  return {raw, [](std::byte* p) { ::operator delete[](p, kAlignment); }};
}

std::byte* at(const Buffer& buffer, std::size_t offset, std::size_t bytes) {
  CONCORD_CHECK(offset <= buffer.bytes() && bytes <= buffer.bytes() - offset, DeviceError,
                "bytes {} to {} of a buffer of {}", offset, offset + bytes, buffer.bytes());
  return static_cast<const HostBuffer&>(buffer).data() + offset;
}

/// By all threads where it is worth it.
void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes) {
  constexpr std::size_t kPart = std::size_t{1} << 18;
  const auto parts = static_cast<std::int64_t>((bytes + kPart - 1) / kPart);
  if (parts < 4) {
    std::memcpy(to, from, bytes);
    return;
  }
  const SignalsBlocked signals;  // for threads that the region starts
#pragma omp parallel for schedule(static) num_threads(team_threads())
  for (std::int64_t part = 0; part < parts; ++part) {
    const std::size_t first = static_cast<std::size_t>(part) * kPart;
    std::memcpy(to + first, from + first, std::min(kPart, bytes - first));
  }
}

/// `guarded` for making primitives: oneDNN's cache of primitives breaks a promise if it has no memory for a new one.
template <class Function>
auto from_onednn(std::string_view what, const Function& function) {
  try {
    return guarded(what, function);
  } catch (const std::future_error&) {
    throw_no_host_memory(what);
  }
}

/// function(), which makes kernels for so many threads, and may try them.
template <class Function>
auto made_by(int threads, std::string_view what, const Function& function) {
  std::optional<decltype(function())> made;
  with_full_team(threads, [&] { made = from_onednn(what, function); });
  return *std::move(made);
}

class HostStaging final : public Staging {
 public:
  explicit HostStaging(std::size_t bytes) : data_(host_memory(bytes)), bytes_(bytes) {}
  [[nodiscard]] std::span<std::byte> bytes() override { return {data_.get(), bytes_}; }

 private:
  std::shared_ptr<std::byte[]> data_;
  std::size_t bytes_;
};

/// Everything has happened by the time it can be asked.
class PastEvent final : public Event {
 public:
  void wait() override {}
};

DeviceInfo describe_cpu() {
  const auto& version = *dnnl::version();
  DeviceInfo info;
  info.id = "cpu";
  info.backend = "onednn";
  const ProcessorInfo processor = processor_info();
  info.name = processor.name;
  info.vendor = processor.vendor;
  info.driver = fmt::format("{}.{}.{}", version.major, version.minor, version.patch);
  info.platform = "oneDNN " + info.driver;
  info.kind = DeviceKind::cpu;
  info.memory = physical_memory_bytes();
  info.max_allocation = info.memory;
  info.compute_units = static_cast<std::uint32_t>(team_threads());
  info.max_work_group = 1;
  info.unified_memory = true;
  info.precisions = {"fp32"};
  if (has_bf16_units()) info.precisions.emplace_back("bf16");
  return info;
}

class CpuDevice final : public Device {
 public:
  CpuDevice() : info_(describe_cpu()), alternatives_({"cpu " + info_.name, "oneDNN " + info_.driver}) {
    survive_forks();
  }

  [[nodiscard]] const DeviceInfo& info() const override { return info_; }

  [[nodiscard]] BufferPtr allocate(std::size_t bytes) override {
    const Use use(*this);
    const auto usage = usage_;
    std::shared_ptr<std::byte[]> memory = host_memory(bytes);
    usage->add(bytes);
    auto buffer = std::make_shared<HostBuffer>(
        bytes, std::shared_ptr<std::byte[]>(memory.get(), [memory, usage, bytes](auto*) { usage->now -= bytes; }));
    fill_fresh(*this, *buffer);
    return buffer;
  }
  [[nodiscard]] std::size_t allocated() const override { return usage_->now; }
  [[nodiscard]] std::size_t peak_allocated() const override { return usage_->peak; }
  [[nodiscard]] StagingPtr allocate_staging(std::size_t bytes) override {
    const Use use(*this);
    return std::make_shared<HostStaging>(bytes);
  }

  void write(Buffer& dst, std::size_t offset, std::span<const std::byte> bytes) override {
    const Use use(*this);
    dst.touch();
    const timeline::Span span("upload", copies_, bytes.size());
    copy_bytes(at(dst, offset, bytes.size()), bytes.data(), bytes.size());
  }
  void read(const Buffer& src, std::size_t offset, std::span<std::byte> bytes) override {
    const Use use(*this);
    const timeline::Span span("download", copies_, bytes.size());
    copy_bytes(bytes.data(), at(src, offset, bytes.size()), bytes.size());
  }
  [[nodiscard]] BufferPtr buffer_over(std::span<std::byte> bytes) override {
    return std::make_shared<HostBuffer>(bytes.size(), std::shared_ptr<std::byte[]>(bytes.data(), [](std::byte*) {}));
  }
  void copy(const Buffer& src, std::size_t src_offset, Buffer& dst, std::size_t dst_offset,
            std::size_t bytes) override {
    const Use use(*this);
    dst.touch();
    const timeline::Span span("copy", copies_, bytes);
    std::memmove(at(dst, dst_offset, bytes), at(src, src_offset, bytes), bytes);
  }
  void fill(Buffer& dst, std::size_t offset, std::size_t bytes, std::uint32_t pattern) override {
    const Use use(*this);
    dst.touch();
    const timeline::Span span("fill", copies_, bytes);
    std::fill_n(reinterpret_cast<std::uint32_t*>(at(dst, offset, bytes)), bytes / sizeof pattern, pattern);
  }
  [[nodiscard]] EventPtr write_async(Buffer& dst, std::size_t offset, const StagingPtr& staging, std::size_t bytes,
                                     const EventPtr&) override {
    CONCORD_CHECK(bytes <= staging->bytes().size(), DeviceError, "write_async: {} bytes from staging memory of {}",
                  bytes, staging->bytes().size());
    write(dst, offset, staging->bytes().first(bytes));
    return event_;
  }
  [[nodiscard]] EventPtr record() override { return event_; }
  void wait_for(const EventPtr&) override {}

  [[nodiscard]] PreparedKernel prepare(const KernelRequest& request) override {
    const Use use(*this);
    if (request.is_exact && request.precision != Precision::fp32) return prepare(in_fp32(request));
    // A kernel that would be done before other threads wake up runs on the calling thread only. On a machine with other
    // work they may wake up long after.
    Backend backend{.threads = is_small(request.op->cost(request.inputs, request.outputs)) ? 1 : team_threads()};
    return made_by(backend.threads, request.op->name(), [&] { return kernel_table().prepare(backend, request); });
  }
  [[nodiscard]] std::unique_ptr<Kernel> prepare_reorder(const TensorSpec& spec, const Layout& from,
                                                        const Layout& to) override {
    const Use use(*this);
    const auto bytes = 2 * static_cast<double>(spec.bytes());
    return made_by(is_small({.flops = 0, .bytes = bytes}) ? 1 : team_threads(), "reorder", [&] {
      // A blocked weights tensor may have dimensions of its own (groups apart); its row-major form has the same.
      const Desc src = desc_of(spec, from);
      const Desc dst = desc_of(spec, to);
      return reorder_kernel(from ? src : plain_desc(spec.dtype, dims_of(dst)),
                            to ? dst : plain_desc(spec.dtype, dims_of(src)));
    });
  }
  [[nodiscard]] bool supports_epilogue(const Operator& op, std::span<const TensorSpec> op_inputs,
                                       const TensorSpec& output, const Expression& epilogue,
                                       std::span<const TensorSpec> extra, Precision /*precision*/) const override {
    return made_by(team_threads(), op.name(),
                   [&] { return supports_fused(alternatives_, op, op_inputs, output, epilogue, extra); });
  }
  /// oneDNN applies them to each value of the result, and its fastest kernels do not.
  [[nodiscard]] bool folds_factors() const override { return true; }
  [[nodiscard]] KernelAlternatives* alternatives() override { return &alternatives_; }
  void finish() override { const Use use(*this); }
  void flush() override { watch_for_other_work(); }
  [[nodiscard]] double timed(Launch& launch) override {
    const Use use(*this);
    const auto start = std::chrono::steady_clock::now();
    launch.enqueue();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

  void enqueue_recorded(Launch& launch, timeline::Label label) override {
    const Use use(*this);
    const timeline::Span span(label, kernels_);
    launch.enqueue();
  }

 private:
  struct Usage {
    std::atomic<std::size_t> now = 0, peak = 0;
    void add(std::size_t bytes) {
      const std::size_t in_use = now += bytes;
      for (std::size_t highest = peak; highest < in_use && !peak.compare_exchange_weak(highest, in_use);) {
      }
    }
  };

  DeviceInfo info_;
  mutable CpuAlternatives alternatives_;  // counts its uses
  std::shared_ptr<Usage> usage_ = std::make_shared<Usage>();
  EventPtr event_ = std::make_shared<PastEvent>();
  timeline::Track kernels_{"cpu kernels"}, copies_{"cpu copies"};
};

}  // namespace

LibraryVersions onednn_versions() {
  return {fmt::format("{}.{}.{}", DNNL_VERSION_MAJOR, DNNL_VERSION_MINOR, DNNL_VERSION_PATCH), describe_cpu().driver};
}

std::vector<DeviceInfo> list_devices() { return {describe_cpu()}; }

DevicePtr open_device(std::size_t index) {
  CONCORD_CHECK(index == 0, DeviceError, "there is only one CPU device, no number {}", index);
  return guarded("cpu", [] { return std::make_shared<CpuDevice>(); });
}

}  // namespace concord::cpu
