// Each rank sums its part of the numbers from the memory of all ranks, and stores the sums in the memory of all. Before
// and after it the ranks meet: a kernel of one work-group sets flags in the memory of the others and waits for theirs.
#include "concord/opencl/launch/peer_memory.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "concord/core/check.hpp"
#include "concord/core/log.hpp"
#include "concord/core/open_file.hpp"
#include "concord/opencl/driver/cuda_memory.hpp"
#include "concord/opencl/driver/status.hpp"
#include "concord/opencl/launch/event.hpp"
#include "concord/opencl/launch/sizes.hpp"
#include "concord/opencl/program/source.hpp"

namespace concord::opencl {
namespace {

constexpr std::size_t kFlagBytes = 128;  // of a rank: FLAG_STRIDE numbers
/// NVIDIA's driver 580 crashes when it imports 512 MiB and more; 256 MiB are imported.
constexpr std::size_t kMostBytes = std::size_t{256} << 20;
/// Sums wait for the links between the GPUs, not for compute units: a few units with many items keep the links busy,
/// and leave the others to kernels that run meanwhile.
constexpr std::size_t kPeerGroup = 1024, kMostPeerGroups = 16, kAtOnce = 4;

// Of cl_khr_external_memory; the headers of OpenCL 1.2 lack them.
constexpr std::uint64_t kOpaqueFile = 0x2060;  // CL_EXTERNAL_MEMORY_HANDLE_OPAQUE_FD_KHR
using CreateBuffer = cl_mem (*)(cl_context, const std::uint64_t* properties, cl_mem_flags, std::size_t, void*, cl_int*);

CreateBuffer create_buffer_function() {
  return reinterpret_cast<CreateBuffer>(::dlsym(RTLD_DEFAULT, "clCreateBufferWithProperties"));
}

/// "f(0) f(1) …" with `between` between them.
template <class Text>
std::string for_ranks(int ranks, const char* between, Text&& text) {
  std::string all;
  for (int rank = 0; rank < ranks; ++rank) all += (rank == 0 ? "" : between) + text(rank);
  return all;
}

std::string source_of(int ranks, int rank, std::size_t group) {
  const auto each = [&](const char* format, const char* between) {
    return for_ranks(ranks, between, [&](int r) { return fmt::format(fmt::runtime(format), r); });
  };
  return fmt::format(
             "#define RANKS {}\n#define RANK {}\n#define OWN p{}\n#define AT_ONCE {}\n#define GROUP {}\n"
             "#define PEER_PARAMETERS {}\n#define FLAG_PARAMETERS {}\n#define FLAGS {}\n"
             "#define ADD_PEERS(i) {}\n#define STORE_PEERS(i) {}\n",
             ranks, rank, rank, kAtOnce, group, each("__global float4 *p{}", ", "), each("__global uint *f{}", ", "),
             each("f{}", ", "), each("sum += p{}[i];", " "), each("p{}[i] = sum;", " ")) +
         std::string(kernel_source("ops/sum_over_peers.cl"));
}

class NvidiaPeerMemory final : public PeerMemory {
 public:
  NvidiaPeerMemory(Device& device, Context& context, std::unique_ptr<CudaMemory> memory, std::size_t bytes, int ranks,
                   double deadline, bool apart)
      : device_(device),
        context_(context),
        queue_(apart ? boost::compute::command_queue(context.context(), context.device()) : context.exchange_queue()),
        name_(device.info().id),
        memory_(std::move(memory)),
        flags_at_(bytes),
        ranks_(ranks),
        patience_(static_cast<std::uint64_t>(deadline * 1e9)) {
    buffer_ = imported(OpenFile(::dup(memory_->file())));
    lost_ = boost::compute::buffer(context_.context(), sizeof(std::uint32_t));
    const std::uint32_t zero = 0;
    check(clEnqueueFillBuffer(queue(), lost_.get(), &zero, sizeof zero, 0, sizeof zero, 0, nullptr, nullptr),
          "clEnqueueFillBuffer", name_);
    check(clEnqueueFillBuffer(queue(), memory_of(buffer_.get()), &zero, sizeof zero, 0, bytes_of(bytes, ranks), 0,
                              nullptr, nullptr),
          "clEnqueueFillBuffer", name_);
    check(clFinish(queue()), "clFinish", name_);  // before another rank sets a flag
  }

  /// With the flags of all ranks behind the numbers.
  static std::size_t bytes_of(std::size_t bytes, int ranks) {
    return bytes + static_cast<std::size_t>(ranks) * kFlagBytes;
  }

  [[nodiscard]] const BufferPtr& buffer() const override { return buffer_; }
  [[nodiscard]] int file() const override { return memory_->file(); }

  void connect(std::vector<int> files, int rank) override {
    std::vector<OpenFile> open;
    for (const int file : files) open.emplace_back(file);
    rank_ = rank;
    for (int other = 0; other < ranks_; ++other) {
      peers_.push_back(other == rank ? buffer_ : imported(std::move(open[static_cast<std::size_t>(other)])));
    }
    program_ = context_.program_from(source_of(ranks_, rank, group()));
    meet_ = kernel("meet");
    meet_after_ = kernel("meet_after");
    sum_ = kernel("sum_part");
    for (int other = 0; other < ranks_; ++other) {
      const cl_mem memory = memory_of(peers_[static_cast<std::size_t>(other)].get());
      flags_.push_back(flags_of(memory));
      const cl_mem flags = flags_.back().get();
      set(meet_, static_cast<cl_uint>(other), flags);
      set(meet_after_, static_cast<cl_uint>(other), flags);
      set(sum_, static_cast<cl_uint>(other), memory);
    }
    const auto count = static_cast<cl_uint>(ranks_);
    for (const KernelHandle* meeting : {&meet_, &meet_after_}) {
      set(*meeting, count + 1, patience_);
      set(*meeting, count + 2, lost_.get());
    }
    set(meet_after_, count + 3, memory_of(buffer_.get()));
    set(sum_, count + 4, lost_.get());
  }

  [[nodiscard]] EventPtr sum(std::size_t first, std::size_t count, const Buffer* start, std::size_t started,
                             const EventPtr& after) override {
    CONCORD_CHECK(first % 4 == 0 && count % 4 == 0 && started % 4 == 0 && (first + count) * sizeof(float) <= flags_at_,
                  ArgumentError, "no sum over the floats [{}, {}) of {} bytes", first, first + count, flags_at_);
    const Device::Use use(device_);
    if (after) {
      const cl_event earlier = raw_of(after);
      check(clFlush(context_.queue().get()), "clFlush", name_);
      check(clEnqueueBarrierWithWaitList(queue(), 1, &earlier, nullptr), "clEnqueueBarrierWithWaitList", name_);
    }
    const auto arguments = static_cast<cl_uint>(ranks_);
    const std::uint64_t first_vector = first / 4, vectors = count / 4;
    meet(meet_);
    const cl_mem from = start == nullptr ? lost_.get() : memory_of(start);
    set(sum_, arguments, from);
    set(sum_, arguments + 1, static_cast<std::uint64_t>(started / 4));
    set(sum_, arguments + 2, first_vector);
    set(sum_, arguments + 3, vectors);
    const std::size_t each = (vectors + static_cast<std::size_t>(ranks_) - 1) / static_cast<std::size_t>(ranks_);
    const std::size_t groups = std::clamp<std::size_t>((each + group() - 1) / group(), 1, kMostPeerGroups);
    enqueue(sum_, groups * group(), group());
    set(meet_after_, arguments + 4, first_vector);
    set(meet_after_, arguments + 5, vectors);
    meet(meet_after_);
    buffer_->touch();
    cl_event done = nullptr;
    check(clEnqueueMarkerWithWaitList(queue(), 0, nullptr, &done), "clEnqueueMarkerWithWaitList", name_);
    auto event = std::make_shared<OpenClEvent>(done, device_.shared_from_this());
    check(clFlush(queue()), "clFlush", name_);  // the others wait for this rank
    return event;
  }

  void give_up() override {
    const auto own = static_cast<std::uint32_t>(rank_) + 1;
    // On a queue of its own: the kernel that reads it is in the way on the others.
    check(clEnqueueWriteBuffer(context_.transfer_queue().get(), lost_.get(), CL_TRUE, 0, sizeof own, &own, 0, nullptr,
                               nullptr),
          "clEnqueueWriteBuffer", name_);
  }

  [[nodiscard]] int lost_rank() override {
    std::uint32_t lost = 0;
    check(clEnqueueReadBuffer(queue(), lost_.get(), CL_TRUE, 0, sizeof lost, &lost, 0, nullptr, nullptr),
          "clEnqueueReadBuffer", name_);
    return static_cast<int>(lost) - 1;
  }

 private:
  [[nodiscard]] cl_command_queue queue() { return queue_.get(); }
  [[nodiscard]] std::size_t group() const { return std::min(kPeerGroup, context_.limits().max_work_group); }

  [[nodiscard]] BufferPtr imported(OpenFile file) {
    const std::array<std::uint64_t, 3> properties{kOpaqueFile, static_cast<std::uint64_t>(file.get()), 0};
    cl_int status = CL_SUCCESS;
    MemoryHandle memory(create_buffer_function()(context_.context().get(), properties.data(), CL_MEM_READ_WRITE,
                                                 memory_->bytes(), nullptr, &status));
    check(status, "clCreateBufferWithProperties", name_);
    static_cast<void>(file.release());  // the driver has taken it over
    return std::make_shared<OpenClBuffer>(std::move(memory), memory_->bytes(), context_.accounting());
  }

  [[nodiscard]] MemoryHandle flags_of(cl_mem memory) const {
    const cl_buffer_region region{flags_at_, static_cast<std::size_t>(ranks_) * kFlagBytes};
    cl_int status = CL_SUCCESS;
    MemoryHandle flags(clCreateSubBuffer(memory, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region, &status));
    check(status, "clCreateSubBuffer", name_);
    return flags;
  }

  [[nodiscard]] KernelHandle kernel(const char* name) const {
    cl_int status = CL_SUCCESS;
    KernelHandle made(clCreateKernel(program_.get(), name, &status));
    check(status, "clCreateKernel", name_);
    return made;
  }

  template <class T>
  void set(const KernelHandle& kernel, cl_uint argument, const T& value) const {
    check(clSetKernelArg(kernel.get(), argument, sizeof value, &value), "clSetKernelArg", name_);
  }

  void enqueue(const KernelHandle& kernel, std::size_t items, std::size_t group) {
    check(clEnqueueNDRangeKernel(queue(), kernel.get(), 1, nullptr, &items, &group, 0, nullptr, nullptr),
          "clEnqueueNDRangeKernel", name_);
  }

  void meet(const KernelHandle& kernel) {
    set(kernel, static_cast<cl_uint>(ranks_), ++turn_);
    enqueue(kernel, static_cast<std::size_t>(ranks_), static_cast<std::size_t>(ranks_));
  }

  Device& device_;
  Context& context_;
  boost::compute::command_queue queue_;
  const std::string name_;
  const std::unique_ptr<CudaMemory> memory_;
  const std::size_t flags_at_;
  const int ranks_;
  const std::uint64_t patience_;
  int rank_ = 0;
  BufferPtr buffer_;
  std::vector<BufferPtr> peers_;
  std::vector<MemoryHandle> flags_;
  boost::compute::buffer lost_;
  PendingProgram program_;
  KernelHandle meet_, meet_after_, sum_;
  std::uint32_t turn_ = 0;
};

}  // namespace

std::unique_ptr<PeerMemory> make_peer_memory(Device& device, Context& context, std::size_t bytes, int ranks,
                                             double deadline, bool apart) {
  const DeviceInfo& info = device.info();
  const auto refuse = [&](const std::string& why) {
    log(LogLevel::debug, fmt::format("{}: no memory to share with other GPUs: {}", info.id, why));
    return nullptr;
  };
  if (!context.limits().is_nvidia) return refuse("it is no GPU of NVIDIA");
  if (create_buffer_function() == nullptr) return refuse("the OpenCL loader is older than OpenCL 3.0");
  std::string extensions(context.device().get_info<CL_DEVICE_EXTENSIONS>());
  if (extensions.find("cl_khr_external_memory_opaque_fd") == std::string::npos) {
    return refuse("the driver has no cl_khr_external_memory_opaque_fd");
  }
  const std::size_t numbers = aligned(bytes), all = NvidiaPeerMemory::bytes_of(numbers, ranks);
  if (all > kMostBytes) return refuse(fmt::format("{} MiB at once are too many for the driver", numbers >> 20));
  std::string why;
  auto memory = CudaMemory::make(info.pci_address, all, why);
  if (!memory) return refuse(why);
  return std::make_unique<NvidiaPeerMemory>(device, context, std::move(memory), numbers, ranks, deadline, apart);
}

}  // namespace concord::opencl
