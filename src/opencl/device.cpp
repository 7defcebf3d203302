// OpenClDevice: memory, data movement, events; it prepares kernels in kernel_table.cpp.
#include "concord/opencl/device.hpp"

#include <fmt/ranges.h>

#include <mutex>

#include "concord/core/check.hpp"
#include "concord/core/log.hpp"
#include "concord/device/fresh_memory.hpp"
#include "concord/device/registry.hpp"
#include "concord/opencl/alternatives.hpp"
#include "concord/opencl/conv/checked_products.hpp"
#include "concord/opencl/conv/filters.hpp"
#include "concord/opencl/conv/joined_gradients.hpp"
#include "concord/opencl/driver/discovery.hpp"
#include "concord/opencl/driver/status.hpp"
#include "concord/opencl/formula/channel_columns.hpp"
#include "concord/opencl/formula/channels_last.hpp"
#include "concord/opencl/formula/padded_tokens.hpp"
#include "concord/opencl/launch/alternatives.hpp"
#include "concord/opencl/launch/event.hpp"
#include "concord/opencl/launch/peer_memory.hpp"
#include "concord/opencl/ops/grouped_sums.hpp"
#include "concord/opencl/ops/joined_products.hpp"
#include "concord/opencl/ops/matmul_tokens.hpp"

namespace concord::opencl {
namespace {

/// Staging memory that keeps its device alive.
class OwnedStaging final : public Staging {
 public:
  OwnedStaging(std::shared_ptr<Device> device, Context& context, std::size_t bytes)
      : device_(std::move(device)), memory_(context, bytes) {}
  [[nodiscard]] std::span<std::byte> bytes() override { return memory_.bytes(); }

 private:
  std::shared_ptr<Device> device_;
  StagingMemory memory_;
};

void require_range(const Buffer& buffer, std::size_t offset, std::size_t bytes, std::string_view what) {
  CONCORD_CHECK(offset <= buffer.bytes() && bytes <= buffer.bytes() - offset, DeviceError,
                "{}: bytes {} to {} of a buffer of {} bytes", what, offset, offset + bytes, buffer.bytes());
}

/// Logs the warning once per process.
void warn_of_short_loops(const DeviceInfo& info) {
  static std::once_flag told;
  if (!info.name.starts_with("llvmpipe")) return;
  std::call_once(told, [&] {
    log(LogLevel::warning, fmt::format("{} ends the loops of a work-item after 65535 iterations: results of large "
                                       "networks may be wrong. Use PoCL (pocl-opencl-icd) or --device cpu",
                                       info.id));
  });
}

}  // namespace

/// A track of the timeline for kernels, for the copies in order with them, and for the transfer queue.
struct OpenClDevice::Logs {
  Logs(const std::string& device, Context& context)
      : kernels(device + " kernels", context.queue().get()),
        copies(device + " copies", context.queue().get()),
        transfers(device + " transfer queue", context.transfer_queue().get()),
        source([this, &context] {
          if (driver_is_gone()) return;
          for (const auto* queue : {&context.queue(), &context.transfer_queue()}) {
            context.mark_end(*queue);
            clFinish(queue->get());
          }
          collect();
        }) {}
  void collect() {
    for (EventLog* log : {&kernels, &copies, &transfers}) log->collect();
  }
  EventLog kernels, copies, transfers;
  timeline::Source source;
};

OpenClDevice::OpenClDevice(const boost::compute::device& device, DeviceInfo info) : info_(std::move(info)) {
  context_ = translated(info_.name, "opening an OpenCL context", [&] { return std::make_unique<Context>(device); });
  context_->alternatives().set_names([this] { return alternative_names(*context_); });
  context_->set_products_to_check(conv_products_to_check);
  tuning_ = std::make_unique<Tuning>(*context_);
  context_->set_tuning(tuning_.get());
  tuner_ = std::make_unique<OpenClTuner>(*this, *context_, *tuning_);
  logs_ = std::make_unique<Logs>(info_.id, *context_);
  warn_of_short_loops(info_);
  ring_ = std::make_unique<TransferRing>(*context_, logs_->copies);
}

OpenClDevice::~OpenClDevice() {
  if (driver_is_gone()) {
    static_cast<void>(ring_.release());
    static_cast<void>(logs_.release());
    static_cast<void>(tuner_.release());
    static_cast<void>(context_.release());
    return;
  }
  for (const auto* queue : {&context_->queue(), &context_->transfer_queue()}) {
    context_->mark_end(*queue);
    clFinish(queue->get());
  }
  logs_->collect();
}

BufferPtr OpenClDevice::allocate(std::size_t bytes) {
  const Use use(*this);
  const auto out_of_memory = [&](std::string_view why) {
    return OutOfMemory(
        fmt::format("{} ({}): no buffer of {} bytes: {}. {} of {} bytes are in use; one buffer holds at most {} bytes. "
                    "Use a smaller batch, or close other programs that use memory",
                    info_.id, info_.name, bytes, why, allocated(), info_.memory, info_.max_allocation));
  };
  if (bytes > info_.max_allocation) throw out_of_memory("it exceeds the largest allocation");
  if (allocated() + bytes > info_.memory) throw out_of_memory("it exceeds the device's memory");
  cl_int status = CL_SUCCESS;
  MemoryHandle memory(
      clCreateBuffer(context_->context().get(), CL_MEM_READ_WRITE, std::max<std::size_t>(bytes, 1), nullptr, &status));
  if (is_memory_failure(status) || status == CL_OUT_OF_RESOURCES) throw out_of_memory(status_name(status));
  check(status, "clCreateBuffer", info_.name);
  auto buffer = std::make_shared<OpenClBuffer>(std::move(memory), bytes, context_->accounting());
  fill_fresh(*this, *buffer);
  return buffer;
}

StagingPtr OpenClDevice::allocate_staging(std::size_t bytes) {
  const Use use(*this);
  return std::make_shared<OwnedStaging>(shared_from_this(), *context_, bytes);
}

std::unique_ptr<PeerMemory> OpenClDevice::allocate_peer(std::size_t bytes, int ranks, double deadline, bool apart) {
  const Use use(*this);
  return make_peer_memory(*this, *context_, bytes, ranks, deadline, apart);
}

void OpenClDevice::write(Buffer& dst, std::size_t offset, std::span<const std::byte> bytes) {
  const Use use(*this);
  require_range(dst, offset, bytes.size(), "write");
  dst.touch();
  ring_->write(memory_of(&dst), offset, bytes);
}

void OpenClDevice::read(const Buffer& src, std::size_t offset, std::span<std::byte> bytes) {
  const Use use(*this);
  require_range(src, offset, bytes.size(), "read");
  ring_->read(memory_of(&src), offset, bytes);
}

void OpenClDevice::write_deferred(Buffer& dst, std::size_t offset, std::span<const std::byte> bytes) {
  const Use use(*this);
  if (!context_->limits().is_cpu || bytes.empty()) return write(dst, offset, bytes);
  require_range(dst, offset, bytes.size(), "write");
  dst.touch();
  static_cast<void>(ring_->write_directly(memory_of(&dst), offset, bytes));
}

EventPtr OpenClDevice::read_async(const Buffer& src, std::size_t offset, std::span<std::byte> bytes) {
  const Use use(*this);
  if (!context_->limits().is_cpu || bytes.empty()) return Device::read_async(src, offset, bytes);
  require_range(src, offset, bytes.size(), "read");
  return std::make_shared<OpenClEvent>(ring_->read_directly(memory_of(&src), offset, bytes, false), shared_from_this());
}

void OpenClDevice::copy(const Buffer& src, std::size_t src_offset, Buffer& dst, std::size_t dst_offset,
                        std::size_t bytes) {
  const Use use(*this);
  require_range(src, src_offset, bytes, "copy from");
  require_range(dst, dst_offset, bytes, "copy to");
  dst.touch();
  if (bytes == 0) return;
  cl_event done = nullptr;
  check(clEnqueueCopyBuffer(context_->queue().get(), memory_of(&src), memory_of(&dst), src_offset, dst_offset, bytes, 0,
                            nullptr, timeline::recording() ? &done : nullptr),
        "clEnqueueCopyBuffer", info_.name);
  record_copy("copy", EventHandle(done), bytes);
}

void OpenClDevice::fill(Buffer& dst, std::size_t offset, std::size_t bytes, std::uint32_t pattern) {
  const Use use(*this);
  require_range(dst, offset, bytes, "fill");
  dst.touch();
  CONCORD_CHECK(offset % 4 == 0 && bytes % 4 == 0, DeviceError, "fill: {} bytes at {} are not multiples of 4", bytes,
                offset);
  if (bytes == 0) return;
  cl_event done = nullptr;
  check(clEnqueueFillBuffer(context_->queue().get(), memory_of(&dst), &pattern, sizeof pattern, offset, bytes, 0,
                            nullptr, timeline::recording() ? &done : nullptr),
        "clEnqueueFillBuffer", info_.name);
  record_copy("fill", EventHandle(done), bytes);
}

EventPtr OpenClDevice::write_async(Buffer& dst, std::size_t offset, const StagingPtr& staging, std::size_t bytes,
                                   const EventPtr& after) {
  const Use use(*this);
  require_range(dst, offset, bytes, "write_async");
  dst.touch();
  CONCORD_CHECK(bytes > 0 && bytes <= staging->bytes().size(), DeviceError,
                "write_async: {} bytes from staging memory of {}", bytes, staging->bytes().size());
  const cl_event earlier = after ? raw_of(after) : nullptr;
  // A queue that waits for an event of another queue needs that queue flushed.
  if (after) check(clFlush(context_->queue().get()), "clFlush", info_.name);
  cl_event done = nullptr;
  check(clEnqueueWriteBuffer(context_->transfer_queue().get(), memory_of(&dst), CL_FALSE, offset, bytes,
                             staging->bytes().data(), after ? 1 : 0, after ? &earlier : nullptr, &done),
        "clEnqueueWriteBuffer", info_.name);
  auto event = std::make_shared<OpenClEvent>(done, shared_from_this());
  check(clFlush(context_->transfer_queue().get()), "clFlush", info_.name);
  if (timeline::recording()) logs_->transfers.add(timeline::label("upload"), done, bytes);
  return event;
}

EventPtr OpenClDevice::download_async(const Buffer& src, std::size_t offset, const StagingPtr& staging,
                                      std::size_t bytes, const EventPtr& after) {
  const Use use(*this);
  require_range(src, offset, bytes, "download_async");
  CONCORD_CHECK(bytes > 0 && bytes <= staging->bytes().size(), DeviceError,
                "download_async: {} bytes to staging memory of {}", bytes, staging->bytes().size());
  const cl_event earlier = after ? raw_of(after) : nullptr;
  if (after) check(clFlush(context_->queue().get()), "clFlush", info_.name);
  cl_event done = nullptr;
  check(clEnqueueReadBuffer(context_->transfer_queue().get(), memory_of(&src), CL_FALSE, offset, bytes,
                            staging->bytes().data(), after ? 1 : 0, after ? &earlier : nullptr, &done),
        "clEnqueueReadBuffer", info_.name);
  auto event = std::make_shared<OpenClEvent>(done, shared_from_this());
  check(clFlush(context_->transfer_queue().get()), "clFlush", info_.name);
  if (timeline::recording()) logs_->transfers.add(timeline::label("download"), done, bytes);
  return event;
}

EventPtr OpenClDevice::record() {
  const Use use(*this);
  cl_event marker = nullptr;
  check(clEnqueueMarkerWithWaitList(context_->queue().get(), 0, nullptr, &marker), "clEnqueueMarkerWithWaitList",
        info_.name);
  return std::make_shared<OpenClEvent>(marker, shared_from_this());
}

void OpenClDevice::wait_for(const EventPtr& event) {
  const Use use(*this);
  if (!event) return;
  const cl_event raw = raw_of(event);
  check(clEnqueueBarrierWithWaitList(context_->queue().get(), 1, &raw, nullptr), "clEnqueueBarrierWithWaitList",
        info_.name);
}

std::unique_ptr<Kernel> OpenClDevice::prepare_reorder(const TensorSpec& spec, const Layout& from, const Layout& to) {
  const Use use(*this);
  return translated(info_.name, "preparing a reorder", [&] {
    std::unique_ptr<Kernel> kernel = prepare_padded_reorder(*context_, from, to);
    if (kernel == nullptr) kernel = prepare_columns_reorder(*context_, from, to);
    const Reorder reorder{spec, from, to};
    if (kernel == nullptr) kernel = prepare_filters(*context_, {&reorder, 1});
    return kernel != nullptr ? std::move(kernel) : prepare_channels_last_reorder(*context_, spec, from, to);
  });
}

std::unique_ptr<Kernel> OpenClDevice::prepare_reorders(std::span<const Reorder> reorders) {
  const Use use(*this);
  return translated(info_.name, "preparing reorders", [&] { return prepare_filters(*context_, reorders); });
}

bool OpenClDevice::multiplies_patches(const TensorSpec& src, const TensorSpec& weights, Precision precision) const {
  return opencl::multiplies_patches(*context_, src.shape, weights.shape, precision);
}

std::optional<GroupKind> OpenClDevice::group_kind(const KernelRequest& request) const {
  const std::optional<GroupKind> product = kind_of_product(*context_, request);
  return product ? product : kind_of_sum(*context_, request);
}

std::unique_ptr<Kernel> OpenClDevice::prepare_group(std::span<const KernelRequest> requests) {
  const Use use(*this);
  return translated(info_.name, "preparing a group", [&] {
    return kind_of_product(*context_, requests[0]) ? prepare_grouped_products(*context_, requests)
                                                   : prepare_grouped_sums(*context_, requests);
  });
}

bool OpenClDevice::groups_products(std::span<const TensorSpec> inputs, Precision precision) const {
  return opencl::groups_products(*context_, inputs, precision);
}

std::optional<GroupKind> OpenClDevice::gradient_kind(const Operator& op, std::span<const TensorSpec> inputs,
                                                     Precision precision) const {
  return kind_of_weights_gradient(*context_, op, inputs, precision);
}

std::unique_ptr<Kernel> OpenClDevice::prepare_appended(const KernelRequest& request) {
  const Use use(*this);
  return translated(info_.name, fmt::format("preparing {}", request.op->name()),
                    [&] { return prepare_appended_product(*context_, request); });
}

KernelAlternatives* OpenClDevice::alternatives() {
  const Use use(*this);
  return &context_->alternatives();
}

void OpenClDevice::finish() {
  const Use use(*this);
  for (const auto* queue : {&context_->queue(), &context_->transfer_queue()}) {
    context_->mark_end(*queue);
    check(clFinish(queue->get()), "clFinish", info_.name);
  }
  logs_->collect();
}

void OpenClDevice::flush() {
  const Use use(*this);
  check(clFlush(context_->queue().get()), "clFlush", info_.name);
}

double OpenClDevice::timed(Launch& launch) {
  const Use use(*this);
  return context_->timed([&] { launch.enqueue(); });
}

void OpenClDevice::enqueue_recorded(Launch& launch, timeline::Label label) {
  const Use use(*this);
  logs_->kernels.add(label, context_->events_of([&] { launch.enqueue(); }));
}

void OpenClDevice::record_copy(const char* name, EventHandle event, std::size_t bytes) {
  if (event.get() != nullptr) logs_->copies.add(timeline::label(name), event.get(), bytes);
}

DevicePtr open_device(std::size_t index) {
  std::vector<std::string> skipped;
  const std::vector<boost::compute::device> devices = enumerate_devices(&skipped);
  CONCORD_CHECK(index < devices.size(), DeviceError,
                "there is no device opencl:{}: {} OpenCL devices were found. `concord doctor` lists the drivers found "
                "and the reasons why they have no device.\n{}",
                index, devices.size(), fmt::join(skipped, "\n"));
  const DeviceInfo info = translated(fmt::format("opencl:{}", index), "reading the properties of the device",
                                     [&] { return info_of(devices[index], index); });
  return std::make_shared<OpenClDevice>(devices[index], info);
}

}  // namespace concord::opencl
