// Programs that other processes build: that they do, and that nothing is lost where they cannot.
#include "concord/opencl/program/build_processes.hpp"

#include <thread>

#include "concord/core/platform.hpp"
#include "concord/opencl/driver/discovery.hpp"
#include "concord/opencl/program/cache.hpp"
#include "files.hpp"
#include "setting.hpp"

namespace concord::test {
namespace {

const std::string kSource = "__kernel void twice(__global int* p) { p[get_global_id(0)] *= FACTOR; }";

std::string factor(int value) { return "-DFACTOR=" + std::to_string(value); }

/// Nothing, and said, where the machine has no OpenCL device or the command is not beside the library.
std::optional<boost::compute::device> device_with_builder() {
  const std::vector<boost::compute::device> found = opencl::enumerate_devices();
  if (!found.empty() && !opencl::BuildProcesses::program().empty()) return found.front();
  WARN("skipped: no OpenCL device, or no command beside the library");
  return std::nullopt;
}

}  // namespace

TEST_CASE("other processes build programs into the cache's folder, the first two apart", "[opencl]") {
  const auto device = device_with_builder();
  if (!device) return;
  constexpr int kPrograms = 8;
  const TemporaryFolder folder;
  opencl::ProgramCache cache(boost::compute::context(*device), *device, folder.path(), 1, 1);
  std::vector<opencl::PendingProgram> programs;
  for (int i = 0; i < kPrograms; ++i) programs.push_back(cache.get(kSource, factor(i)));
  for (const opencl::PendingProgram& program : programs) CHECK(program.get() != nullptr);
  const opencl::ProgramCache::Counts counts = cache.counts();
  CHECK(counts.built == 2);
  CHECK(counts.built_elsewhere == kPrograms - 2);
  CHECK_THROWS_WITH(cache.get("__kernel void broken() { undeclared_name = 1; }", "").get(),
                    contains("undeclared_name"));
}

TEST_CASE("a process that has ended by itself is followed by another", "[opencl]") {
  const auto device = device_with_builder();
  if (!device) return;
  const TemporaryFolder folder;
  opencl::BuildProcesses processes(opencl::BuildProcesses::program(), folder.path(), opencl::device_text(*device), 1);
  CHECK(processes.build(kSource, factor(1)));
  CHECK(processes.build(kSource, factor(2)));
  std::this_thread::sleep_for(std::chrono::seconds(4));
  CHECK(processes.build(kSource, factor(3)));
  CHECK_FALSE(processes.build("not a program", ""));
  CHECK(processes.build(kSource, factor(4)));
}

TEST_CASE("where no process can help, who asked is told", "[opencl]") {
  const auto device = device_with_builder();
  if (!device) return;
  const TemporaryFolder folder;
  const auto program = opencl::BuildProcesses::program();
  const std::string text = opencl::device_text(*device);
  CHECK_FALSE(opencl::BuildProcesses(program, folder.path(), text, 0).build(kSource, factor(1)));
  CHECK_FALSE(opencl::BuildProcesses(program, folder.path(), "another device", 1).build(kSource, factor(1)));
  CHECK_FALSE(opencl::BuildProcesses("/bin/false", folder.path(), text, 1).build(kSource, factor(1)));
  CHECK_FALSE(opencl::BuildProcesses("/no such program", folder.path(), text, 1).build(kSource, factor(1)));
  write_file(folder / "file", "not a folder");
  CHECK_FALSE(opencl::BuildProcesses(program, folder / "file", text, 1).build(kSource, factor(1)));
}

TEST_CASE("a wrong number of build processes is refused", "[opencl]") {
  const auto device = device_with_builder();
  if (!device) return;
  for (const char* const wrong : {"many", "-1", "65", "3 "}) {
    const DebugOption setting("build_processes", wrong);
    CHECK_THROWS_AS(opencl::BuildProcesses::wanted(*device), ArgumentError);
  }
  const DebugOption setting("build_processes", "7");
  CHECK(opencl::BuildProcesses::wanted(*device) == 7);
}

}  // namespace concord::test
