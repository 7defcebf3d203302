// Shared libraries that tests let the library load.
#pragma once

#include "concord/core/platform.hpp"
#include "concord_test.hpp"

namespace concord::test {

/// Where a library is that was built for tests: there, or in $CONCORD_TEST_DIR where that is set, as in a bundle.
[[nodiscard]] inline std::string test_library(const std::filesystem::path& built) {
  return environment("CONCORD_TEST_DIR") ? (folder_of_tests() / built.filename()).string() : built.string();
}

}  // namespace concord::test
