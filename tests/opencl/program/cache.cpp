// The program cache: what it keeps, and that nothing found in its folder can do harm.
#include <cstdlib>
#include <future>
#include <optional>
#include <thread>

#include "concord/core/platform.hpp"
#include "concord/opencl/driver/discovery.hpp"
#include "concord/opencl/program/cache.hpp"
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

/// A cache that builds what it is asked for at once, or by `threads`.
opencl::ProgramCache cache_of(const boost::compute::device& device, const std::filesystem::path& folder,
                              unsigned threads = 0) {
  return {boost::compute::context(device), device, folder, threads};
}

/// Whether the kernel can be made of the program and takes its argument.
bool works(const opencl::PendingProgram& program) {
  cl_int status = CL_SUCCESS;
  const opencl::KernelHandle kernel(clCreateKernel(program.get(), "twice", &status));
  cl_uint arguments = 0;
  return status == CL_SUCCESS &&
         clGetKernelInfo(kernel.get(), CL_KERNEL_NUM_ARGS, sizeof arguments, &arguments, nullptr) == CL_SUCCESS &&
         arguments == 1;
}

std::string factor(int value) { return "-DFACTOR=" + std::to_string(value); }

/// `count` different programs, all asked for before the first is used.
std::vector<opencl::PendingProgram> ask_for(opencl::ProgramCache& cache, int count) {
  std::vector<opencl::PendingProgram> programs;
  for (int i = 0; i < count; ++i) programs.push_back(cache.get(kSource, factor(i)));
  return programs;
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
  opencl::ProgramCache cache = cache_of(*device, folder / "file" / "programs", 4);
  for (const opencl::PendingProgram& program : ask_for(cache, 8)) CHECK(works(program));
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
  const opencl::PendingProgram broken = cache.get("__kernel void broken() { undeclared_name = 1; }", "");
  CHECK_THROWS_WITH(broken.get(), contains("undeclared_name") && contains(device->name()));
  CHECK_THROWS_AS(broken.get(), DeviceError);
}

TEST_CASE("a failed build is tried again", "[opencl]") {
  const auto device = any_device();
  if (!device) return;
  const TemporaryFolder folder;
  const std::string source = "#include \"late.h\"\n" + kSource, options = "-I " + folder.path().string();
  for (const unsigned threads : {0U, 2U}) {
    opencl::ProgramCache cache = cache_of(*device, {}, threads);
    std::filesystem::remove(folder / "late.h");
    CHECK_THROWS_WITH(cache.get(source, options).get(), contains("late.h"));
    CHECK_THROWS_WITH(cache.get(source, options).get(), contains("late.h"));
    write_file(folder / "late.h", "#define FACTOR 4\n");
    CHECK(works(cache.get(source, options)));
    CHECK(cache.counts().built == 1);
    CHECK(cache.counts().from_memory == 0);
  }
}

TEST_CASE("many programs are built, loaded and replaced at once", "[opencl]") {
  const auto device = any_device();
  if (!device) return;
  constexpr int kPrograms = 24;
  const TemporaryFolder folder;
  opencl::ProgramCache first = cache_of(*device, folder.path(), 8);
  for (const opencl::PendingProgram& program : ask_for(first, kPrograms)) CHECK(works(program));
  for (const opencl::PendingProgram& program : ask_for(first, kPrograms)) CHECK(works(program));
  CHECK(first.counts().built == kPrograms);
  CHECK(first.counts().from_memory == kPrograms);

  for (int i = 0; i < kPrograms; i += 2) write_file(first.file_of(kSource, factor(i)), "damage");
  opencl::ProgramCache second = cache_of(*device, folder.path(), 8);
  for (const opencl::PendingProgram& program : ask_for(second, kPrograms)) CHECK(works(program));
  CHECK(second.counts().built == kPrograms / 2);
  CHECK(second.counts().from_disk == kPrograms / 2);

  opencl::ProgramCache third = cache_of(*device, folder.path(), 8);
  for (const opencl::PendingProgram& program : ask_for(third, kPrograms)) CHECK(works(program));
  CHECK(third.counts().from_disk == kPrograms);
}

TEST_CASE("a broken kernel harms none that is built beside it", "[opencl]") {
  const auto device = any_device();
  if (!device) return;
  opencl::ProgramCache cache = cache_of(*device, {}, 4);
  std::vector<opencl::PendingProgram> good, broken;
  for (int i = 0; i < 8; ++i) {
    broken.push_back(cache.get("__kernel void broken() { undeclared_" + std::to_string(i) + " = 1; }", ""));
    good.push_back(cache.get(kSource, factor(i)));
  }
  for (int i = 7; i >= 0; --i) {
    CHECK_THROWS_WITH(broken[static_cast<std::size_t>(i)].get(), contains("undeclared_" + std::to_string(i)));
    CHECK(works(good[static_cast<std::size_t>(i)]));
  }
  CHECK(cache.counts().built == 8);
}

TEST_CASE("threads that want the same program share one build", "[opencl]") {
  const auto device = any_device();
  if (!device) return;
  opencl::ProgramCache cache = cache_of(*device, {}, 4);
  std::vector<std::future<bool>> done;
  for (int i = 0; i < 6; ++i) {
    done.push_back(std::async(std::launch::async, [&] { return works(cache.get(kSource, kOptions)); }));
  }
  for (std::future<bool>& result : done) CHECK(result.get());
  CHECK(cache.counts().built == 1);
  CHECK(cache.counts().from_memory == 5);
}

TEST_CASE("a cache that goes away leaves its programs built or says that they are not", "[opencl]") {
  const auto device = any_device();
  if (!device) return;
  std::vector<opencl::PendingProgram> programs;
  {
    opencl::ProgramCache cache = cache_of(*device, {}, 1);
    programs = ask_for(cache, 12);
    CHECK(works(programs.front()));
  }
  for (const opencl::PendingProgram& program : programs) {
    try {
      const bool is_whole = works(program);
      CHECK(is_whole);
    } catch (const DeviceError& error) {
      CHECK_THAT(error.what(), contains("its device was closed"));
    }
  }
  CHECK(works(programs.front()));
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

// The parts of the next tests that run in processes of their own.
TEST_CASE("program cache process", "[.program-cache-process]") {
  const auto device = any_device();
  const auto folder = environment("CONCORD_TEST_FOLDER");
  if (!device || !folder) return;
  for (int i = 0; i < 8; ++i) {
    opencl::ProgramCache cache = cache_of(*device, *folder);
    CHECK(works(cache.get(kSource, factor(i))));
    std::filesystem::remove(cache.file_of(kSource, factor((i + 4) % 8)));
  }
}

TEST_CASE("program cache exit", "[.program-cache-exit]") {
  const auto device = any_device();
  if (!device) return;
  const std::string when = environment("CONCORD_TEST_EXIT").value_or("");
  opencl::ProgramCache cache = cache_of(*device, {}, 4);
  const std::vector<opencl::PendingProgram> programs = ask_for(cache, 40);
  if (when == "after one") CHECK(works(programs.front()));
  if (when == "while another waits") std::thread([&] { static_cast<void>(programs.back().get()); }).detach();
  std::exit(7);
}

namespace {

/// Runs a hidden test of this program with a variable set; nothing where the system does not name the program.
std::optional<int> run_self(const std::string& test, const std::string& variable, const std::string& value) {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return std::nullopt;
  const std::string command = variable + "='" + value + "' '" + program.string() + "' '" + test + "' > /dev/null 2>&1";
  return std::system(command.c_str());
}

}  // namespace

TEST_CASE("processes may write and remove files of one folder at once", "[opencl]") {
  if (!any_device()) return;
  const TemporaryFolder folder;
  std::vector<std::future<std::optional<int>>> done;
  for (int i = 0; i < 3; ++i) {
    done.push_back(std::async(std::launch::async, [&] {
      return run_self("[.program-cache-process]", "CONCORD_TEST_FOLDER", folder.path().string());
    }));
  }
  for (auto& result : done) {
    const std::optional<int> status = result.get();
    if (!status) WARN("skipped: this system does not name the running program");
    CHECK(status.value_or(0) == 0);
  }
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    CHECK(entry.path().extension() == ".clbin");
  }
}

TEST_CASE("a process may end while programs are built", "[opencl]") {
  if (!any_device()) return;
  for (const std::string when : {"at once", "after one", "while another waits"}) {
    CAPTURE(when);
    const std::optional<int> status = run_self("[.program-cache-exit]", "CONCORD_TEST_EXIT", when);
    if (!status) WARN("skipped: this system does not name the running program");
    CHECK(status.value_or(7 << 8) == 7 << 8);
  }
}

}  // namespace concord::test
