// The loop of a process of BuildProcesses: builds the requested programs into a ProgramCache's folder.
#include <algorithm>
#include <array>
#include <boost/compute/context.hpp>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>

#include "concord/core/child_process.hpp"
#include "concord/device/registry.hpp"
#include "concord/opencl/driver/discovery.hpp"
#include "concord/opencl/program/build_processes.hpp"
#include "concord/opencl/program/cache.hpp"

namespace concord::opencl {
namespace {

using namespace build_protocol;

constexpr ParentChannel parent;

std::optional<std::string> receive_text(std::chrono::seconds patience) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 30;
  std::array<char, sizeof(std::uint64_t)> length{};
  if (!parent.receive(length, patience)) return std::nullopt;
  std::uint64_t bytes = 0;
  std::memcpy(&bytes, length.data(), sizeof bytes);
  if (bytes > kMost) return std::nullopt;
  std::string text(bytes, '\0');
  if (!parent.receive(text, kPatience)) return std::nullopt;
  return text;
}

char built(const boost::compute::context& context, const boost::compute::device& device,
           const std::filesystem::path& folder, const std::string& source, const std::string& options) {
  try {
    ProgramCache cache(context, device, folder, 0);
    static_cast<void>(cache.get(source, options).get());
    return std::filesystem::exists(cache.file_of(source, options)) ? kBuilt : kFailed;
  } catch (const std::exception&) {
    return kFailed;  // the requesting process builds the program again and reports the error
  }
}

}  // namespace

int build_programs() {
  const std::optional<std::string> folder = receive_text(kPatience), wanted = receive_text(kPatience);
  if (!folder || !wanted) return 1;
  const std::vector<boost::compute::device> devices = enumerate_devices();
  const auto device = std::ranges::find(devices, *wanted, device_text);
  if (device == devices.end()) return 1;
  const boost::compute::context context(*device);
  while (const std::optional<std::string> options = receive_text(kIdle)) {
    const std::optional<std::string> source = receive_text(kPatience);
    if (!source) return 1;
    const char answer = built(context, *device, *folder, *source, *options);
    if (!parent.send({&answer, 1})) return 1;
  }
  return 0;
}

}  // namespace concord::opencl
