// Fuzzing the parser of Caffe's prototxt files.
#include "concord/caffe/prototxt.hpp"

#include <cstdlib>

#include "concord/core/error.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const auto message = concord::caffe::TextMessage::parse(text, "net.prototxt");
    for (const auto& field : message.fields) static_cast<void>(message.whole(field.name, 0));
  } catch (const concord::FormatError& error) {
    if (std::string_view(error.what()).find("net.prototxt, byte ") == std::string_view::npos) std::abort();
  }
  return 0;
}
