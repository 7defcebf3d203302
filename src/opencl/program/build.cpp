// Builds and loads programs, and enables marked instructions in PTX.
#include "concord/opencl/program/build.hpp"

#include <algorithm>
#include <boost/compute/platform.hpp>
#include <charconv>
#include <cstring>

#include "concord/core/check.hpp"
#include "concord/core/control_groups.hpp"
#include "concord/core/log.hpp"
#include "concord/core/platform.hpp"
#include "concord/core/text.hpp"
#include "concord/opencl/driver/status.hpp"

namespace concord::opencl {
namespace {

constexpr std::string_view kPocl = "PoCL ";  // precedes PoCL's version in the platform's version text

std::string build_log(cl_program program, cl_device_id device) {
  std::size_t bytes = 0;
  if (clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 0, nullptr, &bytes) != CL_SUCCESS) return {};
  std::string log(bytes, '\0');
  clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, bytes, log.data(), nullptr);
  log.resize(std::strlen(log.c_str()));
  return log;
}

void build(cl_program program, const BuildTarget& target, const std::string& options) {
  const cl_device_id id = target.device.id();
  const cl_int status = clBuildProgram(program, 1, &id, options.c_str(), nullptr, nullptr);
  if (status == CL_SUCCESS) return;
  const std::string text = fmt::format("building a kernel for {} failed: {} ({}). {}\noptions: {}\n{}", target.name,
                                       status_name(status), status, advice(status), options, build_log(program, id));
  if (is_memory_failure(status)) throw OutOfMemory(text);
  throw KernelBuildError(text);
}

/// Whether the first line that is neither empty nor a comment gives the PTX version, as the language requires.
bool is_ptx(std::string_view text) {
  while (text.starts_with("//") || text.starts_with('\n'))
    text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  return text.starts_with(".version");
}

}  // namespace

std::string kernels_in(std::string_view source) {
  constexpr std::string_view kKernel = "\n__kernel ", kVoid = "void ";  // attributes may stand between them
  std::string names;
  for (std::size_t at = source.find(kKernel); at != std::string_view::npos; at = source.find(kKernel, at)) {
    at = source.find(kVoid, at);
    if (at == std::string_view::npos) break;
    at += kVoid.size();
    names += fmt::format("{}{}", names.empty() ? "" : ", ", source.substr(at, source.find('(', at) - at));
  }
  return names.empty() ? "a kernel" : names;
}

ProgramHandle build_source(const BuildTarget& target, const std::string& source, const std::string& options) {
  const char* text = source.c_str();
  const std::size_t bytes = source.size();
  cl_int status = CL_SUCCESS;
  ProgramHandle program(clCreateProgramWithSource(target.context.get(), 1, &text, &bytes, &status));
  check(status, "clCreateProgramWithSource", target.name);
  build(program.get(), target, options);
  if (log_enabled(LogLevel::debug)) {
    const std::string said = build_log(program.get(), target.device.id());
    log(LogLevel::debug, fmt::format("built {} with {}{}", kernels_in(source), options,
                                     said.find_first_not_of(" \n") == std::string::npos ? "" : "\n" + said));
  }
  if (source.find(kInstructionMark) == std::string::npos) return program;
  return build_binary(target, with_marked_instructions(binary_of(program), target.name), options);
}

ProgramHandle build_binary(const BuildTarget& target, std::string_view binary, const std::string& options) {
  const auto* data = reinterpret_cast<const unsigned char*>(binary.data());
  const std::size_t bytes = binary.size();
  const cl_device_id id = target.device.id();
  cl_int status = CL_SUCCESS, loaded = CL_SUCCESS;
  ProgramHandle program(clCreateProgramWithBinary(target.context.get(), 1, &id, &bytes, &data, &loaded, &status));
  check(status, "clCreateProgramWithBinary", target.name);
  build(program.get(), target, options);
  return program;
}

std::string binary_of(const ProgramHandle& program) {
  std::size_t bytes = 0;
  if (clGetProgramInfo(program.get(), CL_PROGRAM_BINARY_SIZES, sizeof bytes, &bytes, nullptr) != CL_SUCCESS) return {};
  std::string binary(bytes, '\0');
  auto* data = reinterpret_cast<unsigned char*>(binary.data());
  if (bytes == 0 ||
      clGetProgramInfo(program.get(), CL_PROGRAM_BINARIES, sizeof data, static_cast<void*>(&data), nullptr) != 0) {
    return {};
  }
  return binary;
}

std::string with_marked_instructions(std::string ptx, std::string_view device) {
  constexpr std::string_view kTarget = ".target", kFamily = "sm_90";
  const std::size_t target = ptx.find(kTarget);
  CONCORD_CHECK(is_ptx(ptx) && target != std::string::npos, DeviceError,
                "a kernel has instructions marked by {}, but the driver of {} returns no PTX in which to enable them",
                kInstructionMark, device);
  for (std::size_t at = ptx.find(kInstructionMark); at != std::string::npos; at = ptx.find(kInstructionMark, at)) {
    ptx.replace(at, kInstructionMark.size(), kInstructionMark.size(), ' ');
  }
  const std::size_t end = std::min(ptx.find('\n', target), ptx.size());
  const std::size_t family = ptx.find(kFamily, target), after = family + kFamily.size();
  const bool is_plain = family < end && (after >= ptx.size() || !(is_letter(ptx[after]) || is_digit(ptx[after])));
  if (is_plain) ptx.insert(after, 1, 'a');
  // The assembler ignores setmaxnreg where it cannot derive how many registers a thread begins with.
  if (ptx.find("setmaxnreg") != std::string::npos) {
    constexpr std::string_view kThreads = ".reqntid";
    for (std::size_t at = ptx.find(kThreads); at != std::string::npos; at = ptx.find(kThreads, at)) {
      at = std::min(ptx.find('\n', at), ptx.size());
      ptx.insert(at, "\n.minnctapersm 1");
    }
  }
  return ptx;
}

unsigned build_threads(const boost::compute::device& device) {
  constexpr unsigned kUsual = 16, kMost = 64;
  if (const auto text = environment("CONCORD_BUILD_THREADS")) {
    const auto wanted = number_in_text<unsigned>(*text);
    CONCORD_CHECK(wanted && *wanted <= kMost, ArgumentError,
                  "CONCORD_BUILD_THREADS is \"{}\"; it must be an integer from 0 to {}", *text, kMost);
    return *wanted;
  }
  const boost::compute::platform platform = device.platform();
  if (!builds_in_parallel(platform.vendor(), platform.version())) return 0;
  return std::min(static_cast<unsigned>(usable_processors()), kUsual);
}

bool keeps_programs_itself(std::string_view version) { return version.find(kPocl) != std::string_view::npos; }

bool builds_in_parallel(std::string_view vendor, std::string_view version) {
  if (const std::size_t pocl = version.find(kPocl); pocl != std::string_view::npos) {
    // "OpenCL 3.0 PoCL 3.1+debian …"; compilers before PoCL 3 shared state between programs.
    int major = 0;
    const std::string_view number = version.substr(pocl + kPocl.size());
    return std::from_chars(number.data(), number.data() + number.size(), major).ec == std::errc() && major >= 3;
  }
  for (const std::string_view safe : {"NVIDIA Corporation", "Advanced Micro Devices, Inc.", "Intel(R) Corporation"}) {
    if (vendor == safe) return true;
  }
  return false;
}

}  // namespace concord::opencl
