// Fuzzing recordings: a file is refused, or read as finite features that are the same when they are read again.
#include "concord/data/audio.hpp"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "concord/core/error.hpp"
#include "file_of_input.hpp"

/// LeakSanitizer reads it. libsndfile and the codecs that it uses do not free all of a damaged file that they refuse,
/// such as the comments of an Ogg: these leaks are theirs. A leak of our own is still found.
extern "C" const char* __lsan_default_suppressions() {  // NOLINT(bugprone-reserved-identifier): its name is fixed
  return "leak:libsndfile\nleak:libvorbis\nleak:libogg\nleak:libopus\nleak:libFLAC\nleak:libmpg123\n";
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace concord;
  static const test::FileOfInput file, list;
  if (size == 0) return 0;
  file.write({data + 1, size - 1});
  const std::string line = "\"" + file.path() + "\"\ta\n";
  list.write({reinterpret_cast<const std::uint8_t*>(line.data()), line.size()});
  data::AudioOptions options;
  options.transcripts = (data[0] & 1U) != 0;
  options.features.seconds = (data[0] & 2U) != 0 ? 0 : 0.05;
  options.features.mels = (data[0] & 4U) != 0 ? 20 : 0;
  try {
    const data::AudioSet set = data::audio(list.path(), options);
    if (set.features.frames() > 10000) return 0;
    std::vector<std::vector<std::byte>> columns;
    for (const auto& specs : {set.samples->feature_specs(), set.samples->label_specs()}) {
      for (const ColumnSpec& spec : specs) columns.emplace_back(spec.spec.bytes());
    }
    const std::vector<std::span<std::byte>> memory(columns.begin(), columns.end());
    set.samples->read(0, memory, {});
    std::vector<float> features(columns[0].size() / sizeof(float));
    std::memcpy(features.data(), columns[0].data(), columns[0].size());
    for (const float value : features) {
      if (!std::isfinite(value)) std::abort();
    }
    const auto before = columns;
    set.samples->read(0, memory, {});
    if (columns != before) std::abort();
  } catch (const FormatError& error) {
    if (std::string_view(error.what()).find("concord-fuzz") == std::string_view::npos) std::abort();
  } catch (const ArgumentError&) {  // too long
  }
  return 0;
}
