// ProgramCache: key, file format, who loads and builds.
//
// File: "CCLP0001", then little-endian u64 key length, u64 binary length, u32 CRC-32 of everything after the header,
// then the key text and the binary.
#include "concord/opencl/program/cache.hpp"

#include <zlib.h>

#include <boost/compute/platform.hpp>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

#include "concord/core/atomic_file.hpp"
#include "concord/core/check.hpp"
#include "concord/core/log.hpp"
#include "concord/core/platform.hpp"
#include "concord/core/private_files.hpp"
#include "concord/core/version.hpp"
#include "concord/opencl/program/build.hpp"
#include "concord/opencl/program/build_processes.hpp"

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

}  // namespace

cl_program PendingProgram::get() const {
  try {
    return program_.get().get();
  } catch (const std::future_error&) {
    throw DeviceError("a kernel was not built: its device was closed, or the process is ending");
  }
}

ProgramCache::ProgramCache(boost::compute::context context, const boost::compute::device& device,
                           std::filesystem::path folder, unsigned threads, unsigned processes)
    : target_{std::move(context), device, device.name()}, folder_(if_private(folder)), pool_(threads) {
  device_text_ = device_text(device);
  const std::filesystem::path program = processes == 0 || folder_.empty() ? "" : BuildProcesses::program();
  if (!program.empty()) {
    processes_ = std::make_unique<BuildProcesses>(program, folder_, device_text_, processes);
  }
}

ProgramCache::~ProgramCache() = default;

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

PendingProgram ProgramCache::get(const std::string& source, const std::string& options) {
  const std::string key = key_of(source, options);
  const auto promise = std::make_shared<std::promise<ProgramHandle>>();
  const PendingProgram pending(promise->get_future().share());
  {
    const std::lock_guard lock(mutex_);
    const auto [known, is_new] = programs_.try_emplace(key, pending);
    if (!is_new) {
      ++counts_.from_memory;
      return known->second;
    }
  }
  // Later calls try again; callers that already wait get the error.
  const auto fail = [this, key, promise] {
    forget(key);
    promise->set_exception(std::current_exception());
  };
  const auto build = [this, key, source, options, promise, fail] {
    try {
      promise->set_value(make(key, source, options));
    } catch (...) {
      fail();
    }
  };
  try {
    pool_.add(build);
  } catch (...) {
    fail();
    throw;
  }
  return pending;
}

ProgramHandle ProgramCache::make(const std::string& key, const std::string& source, const std::string& options) {
  ProgramHandle program = load(key, options);
  int Counts::*came = &Counts::from_disk;
  if (program.get() == nullptr && built_elsewhere(source, options)) {
    program = load(key, options);
    came = &Counts::built_elsewhere;
  }
  if (program.get() == nullptr) {
    program = build_source(target_, source, options);
    store(key, program);
    came = &Counts::built;
  }
  if (came != &Counts::built && log_enabled(LogLevel::debug)) {
    log(LogLevel::debug, fmt::format("took {} from the cache, built with {}", kernels_in(source), options));
  }
  const std::lock_guard lock(mutex_);
  ++(counts_.*came);
  return program;
}

bool ProgramCache::built_elsewhere(const std::string& source, const std::string& options) {
  constexpr unsigned kFew = 2;  // so few are built here before a process has started
  return processes_ != nullptr && to_build_++ >= kFew && processes_->build(source, options);
}

void ProgramCache::forget(const std::string& key) {
  const std::lock_guard lock(mutex_);
  programs_.erase(key);
}

ProgramCache::Counts ProgramCache::counts() const {
  pool_.finish();
  const std::lock_guard lock(mutex_);
  return counts_;
}

ProgramHandle ProgramCache::load(const std::string& key, const std::string& options) const {
  if (folder_.empty()) return {};
  const std::filesystem::path path = path_of(key);
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return {};
  try {
    const std::optional<std::string> file = read_private_file(path);
    if (!file) return {};
    if (const auto binary = binary_in(*file, key)) return build_binary(target_, *binary, options);
    log(LogLevel::info, fmt::format("program cache: {} is damaged or foreign, building again", path.string()));
  } catch (const Error& failure) {
    log(LogLevel::info, fmt::format("program cache: {}, building again", failure.what()));
  }
  return {};
}

void ProgramCache::store(const std::string& key, const ProgramHandle& program) {
  if (folder_.empty() || !writable_) return;
  const std::string binary = binary_of(program);
  if (binary.empty()) return;
  try {
    create_private_directories(folder_);
    const std::string file = file_text(key, binary);
    write_file_atomically(path_of(key), std::as_bytes(std::span(file)), Durability::cached, Readers::owner);
  } catch (const IoError& failure) {
    // The files that exist are still usable.
    if (!writable_.exchange(false)) return;
    log(LogLevel::warning, fmt::format("compiled kernels are not stored: {}. To start faster, set CONCORD_CACHE_DIR to "
                                       "a folder that you can write to.",
                                       failure.what()));
  }
}

}  // namespace concord::opencl
