// The embedded kernel sources: every name that C++ asks for is there, and includes are resolved once.
#include "concord/opencl/program/source.hpp"

#include <filesystem>
#include <regex>

#include "concord/core/platform.hpp"
#include "concord_test.hpp"

namespace concord::test {
namespace {

std::size_t occurrences(std::string_view text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

}  // namespace

TEST_CASE("every embedded kernel file resolves to text without includes of its own", "[opencl]") {
  CHECK(!opencl::kernel_sources().empty());
  for (const opencl::KernelSource& source : opencl::kernel_sources()) {
    CAPTURE(source.name);
    const std::string text = opencl::kernel_source(source.name);
    CHECK(text.size() >= source.text.size() / 2);
    CHECK(occurrences(text, "#include \"") == 0);
  }
}

TEST_CASE("every kernel file that the backend names was embedded", "[opencl]") {
  const std::filesystem::path folder = folder_of_tests().parent_path() / "src" / "opencl";
  if (!std::filesystem::exists(folder)) {
    WARN("skipped: the sources of the backend are not on this machine");
    return;
  }
  const std::regex name(R"re("([a-z0-9_/]+\.(cl|h))")re");
  std::size_t found = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".cpp") continue;
    const std::string text = read_file(entry.path());
    for (std::sregex_iterator at(text.begin(), text.end(), name), end; at != end; ++at, ++found) {
      CHECK_NOTHROW(opencl::kernel_source((*at)[1].str()));
    }
  }
  CHECK(found > 10);
}

TEST_CASE("an included file comes in once, in front of its user", "[opencl]") {
  const std::string text = opencl::kernel_source("ops/gather.cl");
  CHECK(occurrences(text, "#ifndef CONCORD_INDEX_H") == 1);
  CHECK(text.find("typedef uint index_t") < text.find("__kernel void gather"));
}

TEST_CASE("a kernel file that was not embedded is an error that names it", "[opencl]") {
  CHECK_THROWS_WITH(opencl::kernel_source("no_such_kernel.cl"), contains("no_such_kernel.cl"));
}

TEST_CASE("kernels hold no double constants and no approximate functions", "[opencl]") {
  for (const opencl::KernelSource& source : opencl::kernel_sources()) {
    CAPTURE(source.name);
    const std::string code = std::regex_replace(std::string(source.text), std::regex("//[^\n]*"), "");
    CHECK(occurrences(code, "native_") == 0);
    CHECK(occurrences(code, "double") == 0);
  }
}

}  // namespace concord::test
