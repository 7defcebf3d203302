// BuildProcesses: sends requests, and starts and stops processes.
#include "concord/opencl/program/build_processes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/compute/platform.hpp>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include "concord/core/control_groups.hpp"
#include "concord/core/debug_options.hpp"
#include "concord/core/error.hpp"
#include "concord/core/log.hpp"
#include "concord/core/platform.hpp"
#include "concord/core/version.hpp"
#include "concord/opencl/program/build.hpp"

namespace concord::opencl {
namespace {

constexpr const char* kFlag = "--build-programs";

std::string text_with_length(std::string_view text) {
  std::array<char, sizeof(std::uint64_t)> length{};
  const std::uint64_t bytes = text.size();
  std::memcpy(length.data(), &bytes, sizeof bytes);
  return std::string(length.data(), length.size()) + std::string(text);
}

/// Nothing when the process is gone or does not answer.
std::optional<char> answer_of(ChildProcess& process, const std::string& request) {
  std::array<char, 1> answer{};
  if (!process.send(request) || !process.receive(answer, build_protocol::kPatience)) return std::nullopt;
  return answer[0];
}

}  // namespace

std::string device_text(const boost::compute::device& device) {
  return fmt::format("concord {}\nplatform {} {}\ndevice {} {}\ndriver {}\n", kVersion, device.platform().name(),
                     device.platform().version(), device.vendor(), device.name(), device.driver_version());
}

unsigned BuildProcesses::wanted(const boost::compute::device& device) {
  constexpr unsigned kMost = 64;
  constexpr std::uint64_t kUsual = 16, kGiB = std::uint64_t{1} << 30;
  if (const auto named = debug_number("build_processes", 0, kMost)) return static_cast<unsigned>(*named);
  if (device.vendor() != "NVIDIA Corporation") return 0;
  // A context takes about half a GiB of either memory.
  const std::uint64_t by_device = device.get_info<cl_ulong>(CL_DEVICE_GLOBAL_MEM_SIZE) / (2 * kGiB);
  const std::uint64_t by_host = physical_memory_bytes() / (2 * kGiB);
  return static_cast<unsigned>(std::min({static_cast<std::uint64_t>(usable_processors()), kUsual, by_device, by_host}));
}

std::filesystem::path BuildProcesses::program() {
  for (const std::filesystem::path& prefix : library_prefixes()) {
    std::error_code error;
    if (std::filesystem::is_regular_file(prefix / "bin/concord", error)) return prefix / "bin/concord";
  }
  return {};
}

BuildProcesses::BuildProcesses(std::filesystem::path program, std::filesystem::path folder, std::string device_text,
                               unsigned most)
    : program_(std::move(program)), folder_(std::move(folder)), device_text_(std::move(device_text)), free_(most) {}

std::unique_ptr<ChildProcess> BuildProcesses::start() const {
  try {
    auto process = std::make_unique<ChildProcess>(ChildProcess::serving(program_, {kFlag}));
    const bool is_told = process->send(text_with_length(folder_.string()) + text_with_length(device_text_));
    return is_told ? std::move(process) : nullptr;
  } catch (const IoError&) {
    return nullptr;
  }
}

BuildProcesses::~BuildProcesses() {
  {
    const std::lock_guard lock(mutex_);
    is_stopped_ = true;
  }
  used_or_stopped_.notify_all();
  if (watcher_.joinable()) watcher_.join();
}

std::optional<std::unique_ptr<ChildProcess>> BuildProcesses::take() {
  const std::lock_guard lock(mutex_);
  if (free_ == 0) return std::nullopt;
  --free_;
  if (idle_.empty()) return nullptr;
  std::unique_ptr<ChildProcess> process = std::move(idle_.back());
  idle_.pop_back();
  return process;
}

void BuildProcesses::give_back(std::unique_ptr<ChildProcess> process) {
  const std::lock_guard lock(mutex_);
  ++free_;
  ++uses_;
  if (process == nullptr) return;
  idle_.push_back(std::move(process));
  used_or_stopped_.notify_all();
  if (is_watching_) return;
  if (watcher_.joinable()) watcher_.join();
  is_watching_ = true;
  watcher_ = std::thread([this] { watch(); });
}

void BuildProcesses::watch() {
  std::unique_lock lock(mutex_);
  bool is_used = true;
  while (is_used && !is_stopped_) {
    is_used = used_or_stopped_.wait_for(lock, build_protocol::kIdle + std::chrono::seconds(1),
                                        [this, seen = uses_] { return is_stopped_ || uses_ != seen; });
  }
  idle_.clear();
  is_watching_ = false;
}

bool BuildProcesses::build(const std::string& source, const std::string& options) {
  std::optional<std::unique_ptr<ChildProcess>> taken = take();
  if (!taken) return false;
  std::unique_ptr<ChildProcess> process = std::move(*taken);
  const std::string request = text_with_length(options) + text_with_length(source);
  std::optional<char> answer = process ? answer_of(*process, request) : std::nullopt;
  if (!answer) {  // no process yet, or it has exited
    process = start();
    answer = process ? answer_of(*process, request) : std::nullopt;
  }
  give_back(answer ? std::move(process) : nullptr);
  return answer == build_protocol::kBuilt;
}

}  // namespace concord::opencl
