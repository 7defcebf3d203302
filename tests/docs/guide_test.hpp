// What the programs of the guides share: Catch2, the library as a user includes it, and a folder for what they write.
#pragma once

#include <filesystem>

#include "concord_test.hpp"
#include "files.hpp"

namespace concord::test {

/// The guides say "auto"; their tests take the CPU, which every machine has.
[[nodiscard]] inline DevicePtr guide_device() { return Device::open("cpu"); }

/// The working folder during its lifetime is a new, empty one.
class InEmptyFolder {
  TemporaryFolder folder_;
  InFolder in_{folder_.path()};
};

}  // namespace concord::test
