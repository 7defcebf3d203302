// Context: queues, limits and build options of one OpenCL device; timing of a launch.
#include "concord/opencl/launch/context.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "concord/core/check.hpp"
#include "concord/core/debug_options.hpp"
#include "concord/core/platform.hpp"
#include "concord/core/private_files.hpp"
#include "concord/opencl/driver/discovery.hpp"
#include "concord/opencl/driver/limits.hpp"
#include "concord/opencl/driver/status.hpp"
#include "concord/opencl/launch/alternatives.hpp"
#include "concord/opencl/launch/buffer.hpp"
#include "concord/opencl/launch/event_log.hpp"
#include "concord/opencl/program/build.hpp"
#include "concord/opencl/program/build_processes.hpp"
#include "concord/opencl/program/source.hpp"

namespace concord::opencl {
namespace {

Limits limits_of(const boost::compute::device& device, const DeviceLimits& held_to) {
  Limits limits;
  limits.max_work_group = std::min(device.get_info<std::size_t>(CL_DEVICE_MAX_WORK_GROUP_SIZE), held_to.work_group);
  limits.local_memory =
      std::min<std::size_t>(device.get_info<cl_ulong>(CL_DEVICE_LOCAL_MEM_SIZE), held_to.local_memory);
  limits.allocation =
      std::min<std::uint64_t>(device.get_info<cl_ulong>(CL_DEVICE_MAX_MEM_ALLOC_SIZE), held_to.allocation);
  limits.compute_units = static_cast<std::uint32_t>(
      std::min<std::size_t>(device.get_info<cl_uint>(CL_DEVICE_MAX_COMPUTE_UNITS), held_to.compute_units));
  limits.are_lowered = held_to.are_lowered();
  limits.is_nvidia = device.vendor().find("NVIDIA") != std::string::npos;
  return limits;
}

// Divisions and square roots are rounded as IEEE 754 says where the device can, so that devices agree more closely.
// Without -w PoCL would print on our user's terminal how many warnings its optimizer had.
std::string options_of(const boost::compute::device& device) {
  std::string options = "-cl-std=CL1.2 -cl-single-precision-constant -w";
  const auto config = device.get_info<cl_device_fp_config>(CL_DEVICE_SINGLE_FP_CONFIG);
  if ((config & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0) options += " -cl-fp32-correctly-rounded-divide-sqrt";
  // Denormal numbers take a CPU up to a hundred times as long. The CPU backend also flushes them to zero.
  if (device.type() == boost::compute::device::cpu) options += " -cl-denorms-are-zero";
  return options;
}

/// Empty where nothing is stored on disk.
std::filesystem::path program_folder(const boost::compute::device& device) {
  const bool left_to_driver = environment("CONCORD_DRIVER_CACHE").value_or("0") != "0";
  if (left_to_driver && keeps_programs_itself(device.platform().version())) return {};
  return private_cache_directory("programs");
}

/// Seconds between start and end of a finished command; 0 when the device does not report them.
double seconds_of(cl_event event) {
  const auto start = device_time(event, CL_PROFILING_COMMAND_START), end = device_time(event, CL_PROFILING_COMMAND_END);
  return start && end && *end > *start ? static_cast<double>(*end - *start) * 1e-9 : 0;
}

}  // namespace

Context::Context(boost::compute::device device)
    : accounting_(std::make_shared<Accounting>()),
      device_(std::move(device)),
      context_(device_),
      queue_(context_, device_, boost::compute::command_queue::enable_profiling),
      transfer_queue_(context_, device_, boost::compute::command_queue::enable_profiling),
      name_(device_.name()),
      is_rusticl_(device_.platform().name() == "rusticl"),
      options_(options_of(device_)),
      prologue_(prologue_of(device_limits())),
      limits_(limits_of(device_, device_limits())),
      capability_(capability_of(device_)),
      wave_units_(wave_units_of(device_)),
      gpu_(find_gpu_model()),
      programs_(context_, device_, program_folder(device_), build_threads(device_), BuildProcesses::wanted(device_)),
      alternatives_(std::make_unique<OpenClAlternatives>(DenylistOrigin{name_, device_.driver_version()},
                                                         [this] { limits_.is_cpu = uses_cpu_kernels(); })) {
  limits_.is_cpu = uses_cpu_kernels();
  static_cast<void>(driver_is_gone());
}

GpuModel Context::find_gpu_model() const {
  const std::string vendor = device_.vendor();
  const GpuFacts facts{.vendor = vendor,
                       .name = name_,
                       .capability = capability_,
                       .wave_units = wave_units_,
                       .is_gpu = !is_cpu(device_),
                       .compute_units = limits_.compute_units,
                       .megahertz = device_.get_info<cl_uint>(CL_DEVICE_MAX_CLOCK_FREQUENCY)};
  const auto other = debug_option("plan_as");
  return gpu_model(other ? plan_as(*other, facts) : facts);
}

// CONCORD_DEBUG=kernels=KIND selects the kernels of one kind. Every device can run both kinds, so that tests can run
// both on one device.
bool Context::uses_cpu_kernels() const {
  if (const auto kind = debug_choice("kernels", {"cpu", "gpu"})) return *kind == "cpu";
  return alternatives_->prefers_first(alternative::kForCpus, alternative::kForGpus, is_cpu(device_));
}

Context::~Context() = default;

boost::compute::command_queue& Context::exchange_queue() {
  if (exchange_queue_.get() == nullptr) exchange_queue_ = boost::compute::command_queue(context_, device_);
  return exchange_queue_;
}

PendingProgram Context::program(std::string_view file, const std::vector<std::string>& definitions) {
  return program_from(kernel_source(file), definitions);
}

PendingProgram Context::program_from(const std::string& source, const std::vector<std::string>& definitions) {
  std::string options = options_;
  for (const std::string& definition : definitions) {
    CONCORD_CHECK(definition.find(' ') == std::string::npos, Error, "kernel definition \"{}\" has a space", definition);
    options += " -D" + definition;
  }
  keep_source(source, options);
  PendingProgram program = programs_.get(prologue_ + source, options);
  program.has_one_memory_ = std::ranges::find(definitions, "ONE_MEMORY") != definitions.end();
  return program;
}

const std::shared_ptr<Addresses>& Context::addresses() {
  if (!addresses_) {
    cl_int status = CL_SUCCESS;
    KernelHandle kernel(clCreateKernel(program("shared/addresses.cl").get(), "address_of", &status));
    check(status, "creating kernel address_of", name_);
    MemoryHandle answer(clCreateBuffer(context_.get(), CL_MEM_READ_WRITE, Addresses::kAnswerBytes, nullptr, &status));
    check_allocation(status, "clCreateBuffer", name_);
    addresses_ = std::make_shared<Addresses>(queue_, std::move(kernel), std::move(answer), name_);
  }
  return addresses_;
}

bool Context::remembered(std::string_view name, const std::function<bool()>& find) {
  const auto known = answers_.find(name);
  return known != answers_.end() ? known->second : answers_.emplace(name, find()).first->second;
}

std::vector<NamedEvent> Context::events_of(const std::function<void()>& enqueue) {
  const auto taken = [&] {
    timing_ = false;
    std::vector<NamedEvent> events;
    for (auto& [name, raw] : std::exchange(timing_events_, {})) events.push_back({EventHandle(raw), name});
    return events;
  };
  timing_ = true;
  try {
    enqueue();
  } catch (...) {
    static_cast<void>(taken());
    throw;
  }
  return taken();
}

void Context::mark_end(const boost::compute::command_queue& queue) const {
  if (is_rusticl_) clEnqueueMarkerWithWaitList(queue.get(), 0, nullptr, nullptr);
}

double Context::timed(const std::function<void()>& enqueue) {
  mark_end(queue_);
  check(clFinish(queue_.get()), "clFinish", name_);
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<NamedEvent> events = events_of(enqueue);
  mark_end(queue_);
  check(clFinish(queue_.get()), "clFinish", name_);
  const std::chrono::duration<double> host = std::chrono::steady_clock::now() - begin;
  double seconds = 0;
  bool complete = !events.empty();
  for (const auto& [event, name] : events) {
    const double one = event.get() == nullptr ? 0 : seconds_of(event.get());
    complete = complete && one > 0;
    seconds += one;
  }
  return complete ? seconds : host.count();
}

}  // namespace concord::opencl
