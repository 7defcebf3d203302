// Fuzzing the readers of CIFAR's binary files, plain and compressed: a file is refused, or its labels are classes.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "concord/core/error.hpp"
#include "concord/data/files.hpp"

namespace {

/// A folder of this process, for files with fixed names.
std::filesystem::path make_folder() {
  auto folder = std::filesystem::temp_directory_path() / ("concord-fuzz-cifar-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  return folder;
}

}  // namespace

// The lowest bit of the first byte chooses the set.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace concord;
  static const std::filesystem::path folder = make_folder();
  if (size == 0) return 0;
  const bool is_of_ten = (data[0] & 1U) == 0;
  const std::string_view content(reinterpret_cast<const char*>(data + 1), size - 1);
  std::ofstream(folder / (is_of_ten ? "test_batch.bin" : "test.bin"), std::ios::binary) << content;
  try {
    const Dataset dataset = is_of_ten ? data::cifar10("test", folder) : data::cifar100("test", folder);
    for (const std::int32_t label : dataset.labels.values<std::int32_t>()) {
      if (label < 0 || label >= dataset.classes) std::abort();
    }
  } catch (const FormatError& error) {
    if (std::string_view(error.what()).find("concord-fuzz") == std::string_view::npos) std::abort();
  }
  return 0;
}
