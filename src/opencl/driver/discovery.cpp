// Discovery through the C interface of OpenCL: the C++ wrappers treat a missing driver as an error.
#include "concord/opencl/driver/discovery.hpp"

#include <CL/cl_ext.h>

#include <algorithm>
#include <array>
#include <boost/compute/platform.hpp>
#include <boost/compute/system.hpp>
#include <cstdio>

#include "concord/core/check.hpp"
#include "concord/core/log.hpp"
#include "concord/device/registry.hpp"
#include "concord/opencl/driver/capability.hpp"
#include "concord/opencl/driver/handle.hpp"
#include "concord/opencl/driver/limits.hpp"
#include "concord/opencl/driver/matrix_cores.hpp"
#include "concord/opencl/driver/status.hpp"

namespace concord::opencl {
namespace {

void skip(std::vector<std::string>* skipped, const std::string& what) {
  log(LogLevel::warning, what);
  if (skipped != nullptr) skipped->push_back(what);
}

/// The message of an exception. The text of a Boost.Compute exception does not include its error code.
std::string reason_of(const std::exception& error) {
  const auto* const raw = dynamic_cast<const boost::compute::opencl_error*>(&error);
  return raw == nullptr ? error.what() : fmt::format("{} ({})", status_name(raw->error_code()), raw->error_code());
}

std::vector<cl_platform_id> platforms(std::vector<std::string>* skipped = nullptr) {
  if (driver_is_inherited()) {
    skip(skipped,
         "OpenCL is skipped: the parent of this process used it before the fork, and the threads of its drivers exist "
         "only in the parent. Fork before the first use of OpenCL (Device::open, Device::list), or start another "
         "program (exec, posix_spawn)");
    return {};
  }
  cl_uint count = 0;
  cl_int status = clGetPlatformIDs(0, nullptr, &count);
  if (status == CL_PLATFORM_NOT_FOUND_KHR || (status == CL_SUCCESS && count == 0)) return {};
  std::vector<cl_platform_id> ids(count);
  if (status == CL_SUCCESS) status = clGetPlatformIDs(count, ids.data(), nullptr);
  if (status == CL_SUCCESS) return ids;
  skip(skipped, fmt::format("OpenCL platforms cannot be listed: {} ({})", status_name(status), status));
  return {};
}

std::string name_of_platform(cl_platform_id platform) {
  std::size_t bytes = 0;
  if (clGetPlatformInfo(platform, CL_PLATFORM_NAME, 0, nullptr, &bytes) != CL_SUCCESS || bytes == 0) return "unnamed";
  std::string name(bytes, '\0');
  if (clGetPlatformInfo(platform, CL_PLATFORM_NAME, bytes, name.data(), nullptr) != CL_SUCCESS) return "unnamed";
  name.resize(bytes - 1);
  return name;
}

/// The number of devices of a platform; 0 where the platform reports that it has none.
cl_int count_devices(cl_platform_id platform, cl_uint& count) {
  count = 0;
  const cl_int status = clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count);
  return status == CL_DEVICE_NOT_FOUND ? CL_SUCCESS : status;
}

std::vector<cl_device_id> devices_of(cl_platform_id platform, std::vector<std::string>* skipped) {
  cl_uint count = 0;
  cl_int status = count_devices(platform, count);
  if (status == CL_SUCCESS && count == 0) return {};
  std::vector<cl_device_id> ids(count);
  if (status == CL_SUCCESS) status = clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, ids.data(), nullptr);
  if (status == CL_SUCCESS) return ids;
  skip(skipped, fmt::format("OpenCL platform \"{}\" is skipped: its devices cannot be listed: {} ({})",
                            name_of_platform(platform), status_name(status), status));
  return {};
}

/// Why the backend cannot work with the device; empty when it can.
std::string obstacle(const boost::compute::device& device) {
  if (const std::string version = device.get_info<std::string>(CL_DEVICE_VERSION); is_too_old(version)) {
    return fmt::format("its driver {} has \"{}\", but OpenCL 1.2 is needed: install a newer driver",
                       device.driver_version(), version);
  }
  if (!device.get_info<cl_bool>(CL_DEVICE_AVAILABLE)) return "it is not available";
  if (!device.get_info<cl_bool>(CL_DEVICE_COMPILER_AVAILABLE)) return "its driver has no compiler";
  if (!device.get_info<cl_bool>(CL_DEVICE_ENDIAN_LITTLE)) return "it is big-endian";
  return {};
}

DeviceKind kind_of(const boost::compute::device& device) {
  const auto type = device.get_info<cl_device_type>(CL_DEVICE_TYPE);
  if ((type & CL_DEVICE_TYPE_GPU) != 0) return DeviceKind::gpu;
  if ((type & CL_DEVICE_TYPE_CPU) != 0) return DeviceKind::cpu;
  return DeviceKind::accelerator;
}

// AMD's CL_DEVICE_NAME is an instruction-set name ("gfx1100"); users know the name of the board.
std::string board_name(const boost::compute::device& device) {
  constexpr cl_device_info kBoardName = 0x4038;  // CL_DEVICE_BOARD_NAME_AMD
  std::size_t bytes = 0;
  if (!device_limits().extensions || !device.supports_extension("cl_amd_device_attribute_query") ||
      clGetDeviceInfo(device.id(), kBoardName, 0, nullptr, &bytes) != CL_SUCCESS || bytes <= 1) {
    return device.name();
  }
  std::string board(bytes, '\0');
  if (clGetDeviceInfo(device.id(), kBoardName, bytes, board.data(), nullptr) != CL_SUCCESS) return device.name();
  board.resize(bytes - 1);
  return fmt::format("{} ({})", board, device.name());
}

// PoCL's platform name is spelled out; users know it as "pocl".
std::string platform_name(const boost::compute::platform& platform) {
  const bool is_pocl = platform.version().find("PoCL") != std::string::npos;
  return is_pocl ? "PoCL, " + platform.name() : platform.name();
}

/// The PCI address of a device, where an extension of its driver reports it.
std::string pci_address_of(const boost::compute::device& device) {
  struct {
    cl_uint domain, bus, device, function;
  } place{};
  const auto ask = [&](cl_device_info what, auto& value) {
    return clGetDeviceInfo(device.id(), what, sizeof value, &value, nullptr) == CL_SUCCESS;
  };
  if (device.supports_extension("cl_khr_pci_bus_info")) {
    constexpr cl_device_info kPciBusInfo = 0x410F;  // CL_DEVICE_PCI_BUS_INFO_KHR
    if (!ask(kPciBusInfo, place)) return {};
  } else if (device.supports_extension("cl_amd_device_attribute_query")) {
    constexpr cl_device_info kTopology = 0x4037;  // CL_DEVICE_TOPOLOGY_AMD
    constexpr cl_uint kPcie = 1;
    struct {
      cl_uint type;
      std::array<cl_uchar, 17> unused;
      cl_uchar bus, device, function;
    } topology{};
    static_assert(sizeof topology == 24);  // as in AMD's cl_ext.h
    if (!ask(kTopology, topology) || topology.type != kPcie) return {};
    place = {0, topology.bus, topology.device, topology.function};
  } else {
    constexpr cl_device_info kBus = 0x4008, kSlot = 0x4009, kDomain = 0x400A;  // CL_DEVICE_PCI_…_ID_NV
    if (!device.supports_extension("cl_nv_device_attribute_query")) return {};
    if (!ask(kBus, place.bus) || !ask(kSlot, place.device)) return {};
    if (!ask(kDomain, place.domain)) place.domain = 0;  // older drivers
  }
  return fmt::format("{:08X}:{:02X}:{:02X}.{:X}", place.domain, place.bus, place.device, place.function);
}

}  // namespace

std::vector<boost::compute::device> enumerate_devices(std::vector<std::string>* skipped) {
  std::vector<boost::compute::device> devices;
  for (const cl_platform_id platform : platforms(skipped)) {
    try {
      for (const cl_device_id id : devices_of(platform, skipped)) {
        const boost::compute::device device(id);
        if (const std::string why = obstacle(device); !why.empty()) {
          skip(skipped, fmt::format("OpenCL device \"{}\" is skipped: {}", device.name(), why));
        } else {
          devices.push_back(device);
        }
      }
    } catch (const std::exception& error) {
      skip(skipped, fmt::format("OpenCL platform \"{}\" is skipped: {}", name_of_platform(platform), reason_of(error)));
    }
  }
  return devices;
}

bool is_too_old(std::string_view version) {
  unsigned major = 0, minor = 0;
  const std::string text(version);
  return std::sscanf(text.c_str(), "OpenCL %u.%u", &major, &minor) == 2 && (major == 0 || (major == 1 && minor < 2));
}

bool is_cpu(const boost::compute::device& device) {
  const auto type = device.get_info<cl_device_type>(CL_DEVICE_TYPE);
  return (type & CL_DEVICE_TYPE_CPU) != 0 && (type & CL_DEVICE_TYPE_GPU) == 0;
}

DeviceInfo info_of(const boost::compute::device& device, std::size_t index) {
  const DeviceLimits held_to = device_limits();
  DeviceInfo info;
  info.id = fmt::format("opencl:{}", index);
  info.backend = "opencl";
  info.name = board_name(device);
  info.vendor = device.vendor();
  info.platform = platform_name(device.platform());
  info.driver = device.driver_version();
  info.kind = kind_of(device);
  info.memory = std::min<std::uint64_t>(device.get_info<cl_ulong>(CL_DEVICE_GLOBAL_MEM_SIZE), held_to.memory);
  info.max_allocation =
      std::min<std::uint64_t>(device.get_info<cl_ulong>(CL_DEVICE_MAX_MEM_ALLOC_SIZE), held_to.allocation);
  info.local_memory =
      std::min<std::uint64_t>(device.get_info<cl_ulong>(CL_DEVICE_LOCAL_MEM_SIZE), held_to.local_memory);
  info.compute_units = static_cast<std::uint32_t>(
      std::min<std::size_t>(device.get_info<cl_uint>(CL_DEVICE_MAX_COMPUTE_UNITS), held_to.compute_units));
  info.clock_mhz = device.get_info<cl_uint>(CL_DEVICE_MAX_CLOCK_FREQUENCY);
  info.max_work_group =
      std::min<std::uint64_t>(device.get_info<std::size_t>(CL_DEVICE_MAX_WORK_GROUP_SIZE), held_to.work_group);
  info.unified_memory = device.get_info<cl_bool>(CL_DEVICE_HOST_UNIFIED_MEMORY) != 0;
  info.precisions = {"fp32"};
  if (capability_of(device).has_matrix_cores()) info.precisions = {"fp32", "tf32", "bf16", "fp16"};
  const WaveUnits units = wave_units_of(device);
  for (const Precision precision : {Precision::bf16, Precision::fp16}) {
    if (multiply_in(units, precision)) info.precisions.emplace_back(name_of(precision));
  }
  info.pci_address = pci_address_of(device);
  return info;
}

std::vector<DeviceInfo> list_devices(std::vector<std::string>* skipped) {
  static_cast<void>(device_limits());  // an error in the limits is not an error of a device
  std::vector<DeviceInfo> infos;
  const std::vector<boost::compute::device> devices = enumerate_devices(skipped);
  for (std::size_t i = 0; i < devices.size(); ++i) {
    try {
      infos.push_back(info_of(devices[i], i));
    } catch (const std::exception& error) {
      skip(skipped, fmt::format("OpenCL device {} is skipped: {}", i, reason_of(error)));
    }
  }
  return infos;
}

std::vector<std::string> idle_platforms() {
  std::vector<std::string> names;
  for (const cl_platform_id platform : platforms()) {
    cl_uint count = 0;
    if (count_devices(platform, count) == CL_SUCCESS && count == 0) names.push_back(name_of_platform(platform));
  }
  return names;
}

}  // namespace concord::opencl
