// Catch2 2.13 and 3 under one include, and what every test shares: the devices of this machine.
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;
#else
#include <catch2/catch.hpp>
#endif

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "concord/concord.hpp"

namespace concord::test {

/// Every device the tests run on: those in $CONCORD_TEST_DEVICES (comma-separated selectors), else all of the
/// machine. Opened once for the whole run.
[[nodiscard]] const std::vector<DevicePtr>& devices();

/// The folder tests; $CONCORD_TEST_DIR names it where it is not that of the build.
[[nodiscard]] std::filesystem::path folder_of_tests();

/// The sources of the OpenCL kernels, beside it.
[[nodiscard]] inline std::filesystem::path folder_of_kernels() {
  return folder_of_tests().parent_path() / "cl_kernels";
}

/// Keeps a program until the end of the run. Oclgrind 21.10 takes a new buffer for a freed one and then reports its
/// values as uninitialised; so what the operator tests allocate is freed at the end only.
void keep(std::shared_ptr<const Program> program);

/// Matches a text that holds this one: CHECK_THAT(message, contains("[2, 3]") && contains("axis")).
[[nodiscard]] inline auto contains(const std::string& part) {
#if __has_include(<catch2/catch_all.hpp>)
  return Catch::Matchers::ContainsSubstring(part);
#else
  return Catch::Matchers::Contains(part);
#endif
}

}  // namespace concord::test
