// Fuzzing the files of byte-level BPE: they are refused, or their tokens of any text become the text again.
#include "concord/data/bpe.hpp"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "concord/core/error.hpp"
#include "file_of_input.hpp"

// The input is vocab.json, a zero byte, merges.txt, a zero byte and a text.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace concord;
  static const test::FileOfInput vocab, merges;
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  std::size_t at = 0;
  const auto next = [&] {
    const std::size_t end = std::min(all.find('\0', at), size), begin = at;
    at = std::min(end + 1, size);
    return std::span(data + begin, end - begin);
  };
  vocab.write(next());
  merges.write(next());
  const std::string_view text = all.substr(at);
  try {
    const data::Bpe bpe = data::Bpe::read(vocab.path(), merges.path());
    const auto tokens = bpe.encode(text);
    if (bpe.decode(tokens) != text) std::abort();
  } catch (const FormatError& error) {
    if (std::string_view(error.what()).find("concord-fuzz") == std::string_view::npos) std::abort();
  } catch (const ArgumentError&) {  // a byte has no token
  }
  return 0;
}
