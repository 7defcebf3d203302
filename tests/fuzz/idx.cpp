// Fuzzing the readers of IDX files, plain and compressed: a pair of images and labels is refused, or is a data set
// whose labels are classes.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "concord/core/error.hpp"
#include "concord/data/files.hpp"
#include "file_of_input.hpp"

// The input is the bytes of the images as u16, the images and the labels.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace concord;
  static const test::FileOfInput images, labels;
  if (size < 2) return 0;
  const std::span all(data + 2, size - 2);
  const std::size_t cut = std::min<std::size_t>(data[0] | std::size_t{data[1]} << 8, all.size());
  images.write(all.first(cut));
  labels.write(all.subspan(cut));
  try {
    const Dataset dataset = data::idx(images.path(), labels.path());
    if (dataset.features.shape()[0] != dataset.size()) std::abort();
    for (const std::int32_t label : dataset.labels.values<std::int32_t>()) {
      if (label < 0 || label >= dataset.classes) std::abort();
    }
  } catch (const FormatError& error) {
    const std::string_view message = error.what();
    if (message.find("concord-fuzz") == std::string_view::npos || message.find("byte ") == std::string_view::npos) {
      std::abort();
    }
  }
  return 0;
}
