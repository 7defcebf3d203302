// ProgramCache: key, file format, build.
//
// File: "CCLP0001", then little-endian u64 key length, u64 binary length, u32 CRC-32 of everything after the header,
// then the key text and the binary.
#include "concord/opencl/program_cache.hpp"

#include <zlib.h>

#include <boost/compute/platform.hpp>
#include <cstring>
#include <span>
#include <system_error>
#include <vector>

#include "concord/core/check.hpp"
#include "concord/core/log.hpp"
#include "concord/core/platform.hpp"
#include "concord/core/version.hpp"
#include "concord/opencl/handle.hpp"
#include "concord/opencl/status.hpp"

namespace concord::opencl {
namespace {

constexpr std::string_view kMagic = "CCLP0001";
constexpr std::size_t kHeaderBytes = 8 + 8 + 8 + 4;

std::uint64_t fnv1a(std::string_view text, std::uint64_t hash) {
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3U;
  }
  return hash;
}

template <class Int>
void put(std::string& out, Int value) {
  for (std::size_t i = 0; i < sizeof(Int); ++i) out += static_cast<char>((value >> (8 * i)) & 0xff);
}

template <class Int>
Int take(std::string_view text, std::size_t at) {
  Int value = 0;
  for (std::size_t i = 0; i < sizeof(Int); ++i) {
    value |= static_cast<Int>(static_cast<Int>(static_cast<unsigned char>(text[at + i])) << (8 * i));
  }
  return value;
}

std::uint32_t checksum(std::string_view text) {
  return static_cast<std::uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(text.data()), static_cast<z_size_t>(text.size())));
}

std::string file_text(const std::string& key, std::string_view binary) {
  const std::string content = key + std::string(binary);
  std::string out(kMagic);
  put<std::uint64_t>(out, key.size());
  put<std::uint64_t>(out, binary.size());
  put<std::uint32_t>(out, checksum(content));
  return out + content;
}

/// The binary in a cache file, or nothing when the file is damaged or belongs to another key.
std::optional<std::string_view> binary_in(std::string_view file, std::string_view key) {
  if (file.size() < kHeaderBytes || !file.starts_with(kMagic)) return std::nullopt;
  const auto key_bytes = take<std::uint64_t>(file, 8);
  const auto binary_bytes = take<std::uint64_t>(file, 16);
  const std::string_view content = file.substr(kHeaderBytes);
  if (key_bytes > content.size() || binary_bytes != content.size() - key_bytes) return std::nullopt;
  if (take<std::uint32_t>(file, 24) != checksum(content)) return std::nullopt;
  if (content.substr(0, key_bytes) != key) return std::nullopt;
  return content.substr(key_bytes);
}

std::string build_log(cl_program program, cl_device_id device) {
  std::size_t bytes = 0;
  if (clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 0, nullptr, &bytes) != CL_SUCCESS) return {};
  std::string log(bytes, '\0');
  clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, bytes, log.data(), nullptr);
  log.resize(std::strlen(log.c_str()));
  return log;
}

std::string binary_of(cl_program program) {
  std::size_t bytes = 0;
  if (clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof bytes, &bytes, nullptr) != CL_SUCCESS) return {};
  std::string binary(bytes, '\0');
  auto* data = reinterpret_cast<unsigned char*>(binary.data());
  if (bytes == 0 ||
      clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof data, static_cast<void*>(&data), nullptr) != 0) {
    return {};
  }
  return binary;
}

constexpr std::string_view kHidden = "//@";

// Instructions that a driver's compiler does not know are written as comments //@ in inline assembly, so that it still gives
// them registers. NVIDIA's binaries are PTX text: here the comments become instructions, and the target the architecture's
// own (sm_90a) that has them.
boost::compute::program with_hidden_instructions(cl_context context, cl_device_id device, cl_program built,
                                                 const std::string& options, const std::string& device_name) {
  std::string text = binary_of(built);
  const std::size_t target = text.find("sm_90", text.find(".target"));
  CONCORD_CHECK(target != std::string::npos, DeviceError, "{}: no target sm_90 in a compiled kernel", device_name);
  text.replace(target, 5, "sm_90a");
  for (std::size_t at = 0; (at = text.find(kHidden, at)) != std::string::npos;) text.replace(at, kHidden.size(), "   ");
  const auto* data = reinterpret_cast<const unsigned char*>(text.data());
  const std::size_t bytes = text.size();
  cl_int status = CL_SUCCESS, loaded = CL_SUCCESS;
  const ProgramHandle program(clCreateProgramWithBinary(context, 1, &device, &bytes, &data, &loaded, &status));
  check(status, "clCreateProgramWithBinary", device_name);
  status = clBuildProgram(program.get(), 1, &device, options.c_str(), nullptr, nullptr);
  CONCORD_CHECK(status == CL_SUCCESS, DeviceError, "assembling a kernel for {} failed: {} ({})\n{}", device_name,
                status_name(status), status, build_log(program.get(), device));
  return boost::compute::program(program.get(), true);
}

}  // namespace

ProgramCache::ProgramCache(boost::compute::context context, boost::compute::device device, std::filesystem::path folder)
    : context_(std::move(context)), device_(std::move(device)), folder_(std::move(folder)) {
  device_text_ =
      fmt::format("concord {}\nplatform {} {}\ndevice {} {}\ndriver {}\n", kVersion, device_.platform().name(),
                  device_.platform().version(), device_.vendor(), device_.name(), device_.driver_version());
}

std::string ProgramCache::key_of(const std::string& source, const std::string& options) const {
  return device_text_ + "options " + options + "\n" + source;
}

std::filesystem::path ProgramCache::path_of(const std::string& key) const {
  return folder_ /
         fmt::format("{:016x}{:016x}.clbin", fnv1a(key, 0xcbf29ce484222325U), fnv1a(key, 0x9ae16a3b2f90404fU));
}

std::filesystem::path ProgramCache::file_of(const std::string& source, const std::string& options) const {
  return path_of(key_of(source, options));
}

boost::compute::program ProgramCache::get(const std::string& source, const std::string& options) {
  const std::string key = key_of(source, options);
  if (const auto found = programs_.find(key); found != programs_.end()) {
    ++counts_.from_memory;
    return found->second;
  }
  std::optional<boost::compute::program> program = load(key, options);
  if (program) {
    ++counts_.from_disk;
  } else {
    program = build(source, options);
    ++counts_.built;
    store(key, *program);
  }
  return programs_.emplace(key, *program).first->second;
}

std::optional<boost::compute::program> ProgramCache::load(const std::string& key, const std::string& options) const {
  if (folder_.empty()) return std::nullopt;
  const std::filesystem::path path = path_of(key);
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return std::nullopt;
  try {
    const std::string file = read_file(path);
    const auto binary = binary_in(file, key);
    if (!binary) {
      log(LogLevel::info, fmt::format("program cache: {} is damaged or foreign, building anew", path.string()));
      return std::nullopt;
    }
    const auto* data = reinterpret_cast<const unsigned char*>(binary->data());
    const std::size_t bytes = binary->size();
    const cl_device_id device = device_.id();
    cl_int status = CL_SUCCESS, loaded = CL_SUCCESS;
    const ProgramHandle program(clCreateProgramWithBinary(context_.get(), 1, &device, &bytes, &data, &loaded, &status));
    check(status, "clCreateProgramWithBinary", device_.name());
    check(clBuildProgram(program.get(), 1, &device, options.c_str(), nullptr, nullptr), "clBuildProgram",
          device_.name());
    return boost::compute::program(program.get(), true);
  } catch (const Error& failure) {
    log(LogLevel::info, fmt::format("program cache: {}, building anew", failure.what()));
    return std::nullopt;
  }
}

boost::compute::program ProgramCache::build(const std::string& source, const std::string& options) const {
  const char* text = source.c_str();
  const std::size_t bytes = source.size();
  const cl_device_id device = device_.id();
  cl_int status = CL_SUCCESS;
  const ProgramHandle program(clCreateProgramWithSource(context_.get(), 1, &text, &bytes, &status));
  check(status, "clCreateProgramWithSource", device_.name());
  status = clBuildProgram(program.get(), 1, &device, options.c_str(), nullptr, nullptr);
  CONCORD_CHECK(status == CL_SUCCESS, DeviceError, "building a kernel for {} failed: {} ({})\noptions: {}\n{}",
                device_.name(), status_name(status), status, options, build_log(program.get(), device));
  if (log_enabled(LogLevel::debug)) {
    log(LogLevel::debug, fmt::format("built a kernel with {}\n{}", options, build_log(program.get(), device)));
  }
  if (source.find(kHidden) != std::string::npos) {
    return with_hidden_instructions(context_.get(), device, program.get(), options, device_.name());
  }
  return boost::compute::program(program.get(), true);
}

void ProgramCache::store(const std::string& key, const boost::compute::program& program) {
  if (folder_.empty() || !writable_) return;
  const std::string binary = binary_of(program.get());
  if (binary.empty()) return;
  try {
    std::error_code error;
    std::filesystem::create_directories(folder_, error);
    CONCORD_CHECK(!error, IoError, "cannot create {}: {}", folder_.string(), error.message());
    const std::string file = file_text(key, binary);
    write_file_atomically(path_of(key), std::as_bytes(std::span(file)), Durability::cached);
  } catch (const IoError& failure) {
    log(LogLevel::warning, fmt::format("compiled kernels are not kept: {}. Set CONCORD_CACHE_DIR to a folder that can "
                                       "be written to start faster.",
                                       failure.what()));
    writable_ = false;  // what is there still serves
  }
}

}  // namespace concord::opencl
