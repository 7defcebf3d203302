// The program cache: what it keeps, and that nothing found in its folder can do harm.
#include "concord/opencl/program_cache.hpp"

#include <boost/compute/kernel.hpp>
#include <cstdlib>
#include <future>
#include <optional>

#include "concord/core/platform.hpp"
#include "concord/opencl/discovery.hpp"
#include "files.hpp"

namespace concord::test {
namespace {

const std::string kSource = "__kernel void twice(__global int* p) { p[get_global_id(0)] *= FACTOR; }";
const std::string kOptions = "-DFACTOR=2";

/// Nothing where the machine has no OpenCL device; the test then says so.
std::optional<boost::compute::device> any_device() {
  const std::vector<boost::compute::device> found = opencl::enumerate_devices();
  if (!found.empty()) return found.front();
  WARN("skipped: no OpenCL device");
  return std::nullopt;
}

opencl::ProgramCache cache_of(const boost::compute::device& device, const std::filesystem::path& folder) {
  return {boost::compute::context(device), device, folder};
}

/// Whether the kernel can be made of the program and takes its argument.
bool works(const boost::compute::program& program) {
  const boost::compute::kernel kernel(program, "twice");
  return kernel.arity() == 1;
}

}  // namespace

TEST_CASE("a program is built once, then comes from memory, and from the disk for the next process", "[opencl]") {
  const auto device = any_device();
  if (!device) return;
  const TemporaryFolder folder;
  opencl::ProgramCache first = cache_of(*device, folder.path());
  CHECK(works(first.get(kSource, kOptions)));
  CHECK(works(first.get(kSource, kOptions)));
  CHECK(first.counts().built == 1);
  CHECK(first.counts().from_memory == 1);
  CHECK(std::filesystem::exists(first.file_of(kSource, kOptions)));

  opencl::ProgramCache second = cache_of(*device, folder.path());
  CHECK(works(second.get(kSource, kOptions)));
  CHECK(second.counts().from_disk == 1);
  CHECK(second.counts().built == 0);
}

TEST_CASE("other source or options are another program", "[opencl]") {
  const auto device = any_device();
  if (!device) return;
  const TemporaryFolder folder;
  opencl::ProgramCache cache = cache_of(*device, folder.path());
  static_cast<void>(cache.get(kSource, kOptions));
  static_cast<void>(cache.get(kSource, "-DFACTOR=3"));
  static_cast<void>(cache.get(kSource + "\n", kOptions));
  CHECK(cache.counts().built == 3);
  CHECK(cache.file_of(kSource, kOptions) != cache.file_of(kSource, "-DFACTOR=3"));
}

TEST_CASE("a damaged or foreign program file is built anew and replaced", "[opencl]") {
  const auto device = any_device();
  if (!device) return;
  const TemporaryFolder folder;
  const std::filesystem::path path = cache_of(*device, folder.path()).file_of(kSource, kOptions);
  static_cast<void>(cache_of(*device, folder.path()).get(kSource, kOptions));
  const std::string good = read_file(path);

  std::string flipped = good;
  flipped[flipped.size() / 2] = static_cast<char>(flipped[flipped.size() / 2] ^ 1);
  std::string lying_length = good;
  lying_length[15] = '\x7f';
  opencl::ProgramCache other = cache_of(*device, folder.path());
  static_cast<void>(other.get(kSource, "-DFACTOR=9"));
  const std::string foreign = read_file(other.file_of(kSource, "-DFACTOR=9"));

  for (const std::string& content : {std::string(), std::string("x"), good.substr(0, 27),
                                     good.substr(0, good.size() - 1), good + "x", flipped, lying_length, foreign}) {
    CAPTURE(content.size());
    write_file(path, content);
    opencl::ProgramCache cache = cache_of(*device, folder.path());
    CHECK(works(cache.get(kSource, kOptions)));
    CHECK(cache.counts().built == 1);
    CHECK(read_file(path).size() == good.size());
    opencl::ProgramCache next = cache_of(*device, folder.path());
    static_cast<void>(next.get(kSource, kOptions));
    CHECK(next.counts().from_disk == 1);
  }
}

TEST_CASE("a folder that cannot be written is done without and reported once", "[opencl]") {
  const auto device = any_device();
  if (!device) return;
  const TemporaryFolder folder;
  write_file(folder / "file", "not a folder");
  int warnings = 0;
  set_log([&](LogLevel level, std::string_view) { warnings += level == LogLevel::warning ? 1 : 0; });
  opencl::ProgramCache cache = cache_of(*device, folder / "file" / "programs");
  CHECK(works(cache.get(kSource, kOptions)));
  CHECK(works(cache.get(kSource, "-DFACTOR=3")));
  set_log({});
  CHECK(warnings == 1);
}

TEST_CASE("without a folder programs are kept in memory", "[opencl]") {
  const auto device = any_device();
  if (!device) return;
  opencl::ProgramCache cache = cache_of(*device, {});
  CHECK(works(cache.get(kSource, kOptions)));
  CHECK(works(cache.get(kSource, kOptions)));
  CHECK(cache.counts().from_memory == 1);
}

TEST_CASE("a kernel that does not compile gives the compiler's words", "[opencl]") {
  const auto device = any_device();
  if (!device) return;
  opencl::ProgramCache cache = cache_of(*device, {});
  CHECK_THROWS_WITH(cache.get("__kernel void broken() { undeclared_name = 1; }", ""),
                    contains("undeclared_name") && contains(device->name()));
}

TEST_CASE("threads with devices of their own share a folder", "[opencl]") {
  const auto device = any_device();
  if (!device) return;
  const TemporaryFolder folder;
  std::vector<std::future<bool>> done;
  for (int i = 0; i < 4; ++i) {
    done.push_back(std::async(std::launch::async, [&] {
      opencl::ProgramCache cache = cache_of(*device, folder.path());
      return works(cache.get(kSource, kOptions));
    }));
  }
  for (std::future<bool>& result : done) CHECK(result.get());
}

// The part of the next test that runs in processes of its own.
TEST_CASE("program cache process", "[.program-cache-process]") {
  const auto device = any_device();
  const auto folder = environment("CONCORD_TEST_FOLDER");
  if (!device || !folder) return;
  for (int i = 0; i < 8; ++i) {
    opencl::ProgramCache cache = cache_of(*device, *folder);
    CHECK(works(cache.get(kSource, "-DFACTOR=" + std::to_string(i))));
    std::filesystem::remove(cache.file_of(kSource, "-DFACTOR=" + std::to_string((i + 4) % 8)));
  }
}

TEST_CASE("processes may write and remove files of one folder at once", "[opencl]") {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error || !any_device()) {
    WARN("skipped: this system does not name the running program");
    return;
  }
  const TemporaryFolder folder;
  const std::string command = "CONCORD_TEST_FOLDER='" + folder.path().string() + "' '" + program.string() +
                              "' '[.program-cache-process]' > /dev/null 2>&1";
  std::vector<std::future<int>> done;
  for (int i = 0; i < 3; ++i) {
    done.push_back(std::async(std::launch::async, [&] { return std::system(command.c_str()); }));
  }
  for (std::future<int>& result : done) CHECK(result.get() == 0);
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    CHECK(entry.path().extension() == ".clbin");
  }
}

}  // namespace concord::test
