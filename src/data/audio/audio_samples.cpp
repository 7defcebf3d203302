// A list of recordings as Samples: decoding, resampling and the spectrogram are one stage of `read`.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>

#include "concord/core/check.hpp"
#include "concord/core/log.hpp"
#include "concord/core/platform.hpp"
#include "concord/core/utf8.hpp"
#include "concord/data/audio.hpp"
#include "concord/data/audio/recording.hpp"
#include "concord/data/audio/recordings.hpp"
#include "concord/data/audio/sound_resampler.hpp"
#include "concord/data/audio/spectrogram.hpp"
#include "concord/data/audio/transcripts.hpp"
#include "concord/data/records/labels.hpp"
#include "concord/data/records/left_out.hpp"
#include "concord/data/records/sample_list.hpp"

namespace concord::data {
namespace {

/// What a thread reuses from one recording to the next.
struct AudioMemory {
  std::vector<float> sound, resampled, features;
  Spectrogram::Memory spectrogram;
};

AudioMemory& audio_memory() {
  thread_local AudioMemory memory;
  return memory;
}

/// The paths and labels of a list.
struct AudioList {
  std::filesystem::path directory;  // from the root
  NameTable paths;
  std::vector<Column> labels;
  std::vector<std::string> class_names;

  [[nodiscard]] std::filesystem::path path_of(std::int64_t row) const {
    return directory / std::filesystem::path(std::string(paths[static_cast<std::size_t>(row)]));
  }
};

/// Runs `action` on a recording; damage is told with its path.
template <class Action>
auto with_recording(const std::filesystem::path& path, Action&& action) {
  try {
    Recording recording(path);
    return action(recording);
  } catch (const FormatError& error) {
    throw FormatError(fmt::format("{}: {}", printable(path.string()), error.what()));
  }
}

class AudioSamples final : public Samples {
 public:
  AudioSamples(AudioList list, const AudioFeatures& features, const AudioOptions& options)
      : list_(std::move(list)),
        features_(features),
        has_transcripts_(options.transcripts),
        lengths_name_(options.lengths_name),
        masks_(options.masks),
        spectrogram_(features),
        resamplers_(features.rate) {
    class_names = list_.class_names;
  }

  [[nodiscard]] std::int64_t size() const override { return static_cast<std::int64_t>(list_.paths.size()); }
  [[nodiscard]] std::vector<ColumnSpec> feature_specs() const override {
    std::vector<ColumnSpec> specs{{"", {DType::f32, Shape{1, features_.features(), features_.frames()}}}};
    if (!lengths_name_.empty()) specs.push_back({lengths_name_, {DType::i32, Shape{}}});
    return specs;
  }
  [[nodiscard]] std::vector<ColumnSpec> label_specs() const override {
    std::vector<ColumnSpec> specs;
    for (const Column& label : list_.labels) specs.push_back(label.spec());
    return specs;
  }
  [[nodiscard]] std::string name_of(std::int64_t row) const override { return list_.path_of(row).string(); }
  [[nodiscard]] std::optional<std::int32_t> class_of(std::int64_t row) const override {
    if (list_.labels.empty()) return std::nullopt;
    const Tensor& labels = list_.labels[0].values;
    if (labels.dtype() != DType::i32 || labels.shape().rank() != 1) return std::nullopt;
    return labels.values<std::int32_t>()[static_cast<std::size_t>(row)];
  }

  void read(std::int64_t row, std::span<const std::span<std::byte>> columns, const SampleRandom& random) const override;

 private:
  std::int64_t read_sound(std::int64_t row, AudioMemory& memory) const;
  void mask(std::span<float> features, const SampleRandom& random) const;

  AudioList list_;
  AudioFeatures features_;
  bool has_transcripts_;
  std::string lengths_name_;
  AudioMasks masks_;
  Spectrogram spectrogram_;
  mutable SoundResamplers resamplers_;
};

/// Fills memory.resampled with the samples that count.
std::int64_t AudioSamples::read_sound(std::int64_t row, AudioMemory& memory) const {
  const std::int64_t most = std::llround(features_.seconds * static_cast<double>(features_.rate));
  return with_recording(list_.path_of(row), [&](Recording& recording) {
    const bool is_resampled = recording.rate() != features_.rate;
    const auto resampler = is_resampled ? resamplers_.from(recording.rate()) : nullptr;
    recording.read(is_resampled ? resampler->input_for(most + 1) : most + 1, memory.sound);
    CONCORD_CHECK(!memory.sound.empty(), FormatError, "has no sound");
    const auto read = static_cast<std::int64_t>(memory.sound.size());
    const std::int64_t all = is_resampled ? resampler->output_of(read) : read;
    CONCORD_CHECK(all <= most || !has_transcripts_, FormatError,
                  "lasts {}; a sample has {} s, and a cut one would not have the whole transcript",
                  recording.count() ? fmt::format("{:.2f} s", static_cast<double>(*recording.count()) /
                                                                  static_cast<double>(recording.rate()))
                                    : "longer",
                  features_.seconds);
    const auto count = static_cast<std::size_t>(std::min(all, most));
    memory.resampled.resize(count);
    if (is_resampled) {
      (*resampler)(memory.sound, memory.resampled);
    } else {
      std::copy_n(memory.sound.begin(), count, memory.resampled.begin());
    }
    return static_cast<std::int64_t>(count);
  });
}

void AudioSamples::mask(std::span<float> features, const SampleRandom& random) const {
  const auto rows = static_cast<std::size_t>(features_.features()), frames = features.size() / rows;
  std::uint64_t index = 0;
  const auto below = [&](std::size_t bound) {  // in [0, bound)
    return static_cast<std::size_t>(random.word("audio masks", index++) * std::uint64_t{bound} >> 32U);
  };
  for (int i = 0; i < masks_.time; ++i) {
    const std::size_t width = below(std::min(static_cast<std::size_t>(masks_.time_width), frames) + 1);
    const std::size_t first = below(frames - width + 1);
    for (std::size_t row = 0; row < rows; ++row) std::fill_n(features.data() + row * frames + first, width, 0.0F);
  }
  for (int i = 0; i < masks_.frequency; ++i) {
    const std::size_t width = below(std::min(static_cast<std::size_t>(masks_.frequency_width), rows) + 1);
    const std::size_t first = below(rows - width + 1);
    std::fill_n(features.data() + first * frames, width * frames, 0.0F);
  }
}

void AudioSamples::read(std::int64_t row, std::span<const std::span<std::byte>> columns,
                        const SampleRandom& random) const {
  AudioMemory& memory = audio_memory();
  memory.features.resize(static_cast<std::size_t>(features_.features() * features_.frames()));
  const std::size_t bytes = memory.features.size() * sizeof(float), inputs = lengths_name_.empty() ? 1 : 2;
  CONCORD_CHECK(
      row >= 0 && row < size() && columns.size() == inputs + list_.labels.size() && columns[0].size() == bytes,
      ShapeError, "{}: the memory for sample {} has another form than its columns", name, row);
  const std::int64_t samples = read_sound(row, memory);
  spectrogram_(memory.resampled, memory.features, memory.spectrogram);
  mask(memory.features, random);
  std::memcpy(columns[0].data(), memory.features.data(), bytes);
  if (inputs == 2) {
    const auto frames = static_cast<std::int32_t>(spectrogram_.frames_of(samples));
    CONCORD_CHECK(columns[1].size() == sizeof(frames), ShapeError, "{}: a length has {} bytes", name,
                  columns[1].size());
    std::memcpy(columns[1].data(), &frames, sizeof(frames));
  }
  for (std::size_t i = 0; i < list_.labels.size(); ++i) {
    const std::span<std::byte> label = columns[inputs + i];
    const std::span<const std::byte> values = list_.labels[i].values.bytes();
    const std::size_t size_of_one = values.size() / static_cast<std::size_t>(size());
    CONCORD_CHECK(label.size() == size_of_one, ShapeError, "{}: a label has {} bytes, and there is memory for {}", name,
                  size_of_one, label.size());
    std::memcpy(label.data(), values.data() + static_cast<std::size_t>(row) * size_of_one, size_of_one);
  }
}

void check_options(const AudioOptions& options) {
  options.features.check();
  const AudioMasks& masks = options.masks;
  CONCORD_CHECK(masks.time >= 0 && masks.time_width >= 0 && masks.frequency >= 0 && masks.frequency_width >= 0,
                ArgumentError, "audio: masks and their widths are not negative");
  CONCORD_CHECK(options.label_length >= 0 && options.frames_per_step >= 1, ArgumentError,
                "audio: label_length {} is negative, or frames_per_step {} is not positive", options.label_length,
                options.frames_per_step);
  CONCORD_CHECK(options.transcripts || options.alphabet.empty(), ArgumentError,
                "audio: an alphabet is for transcripts; there are classes");
}

/// The seconds of a recording; nothing if it cannot be opened and such ones are left out, which `unread` counts.
std::optional<double> seconds_of(const std::filesystem::path& path, BadSamples bad, LeftOut& unread) {
  struct Length {
    std::optional<std::int64_t> count;
    std::int64_t rate = 1;
  } length;
  try {
    length = with_recording(path, [](const Recording& recording) {
      return Length{recording.count(), static_cast<std::int64_t>(recording.rate())};
    });
  } catch (const FormatError& error) {
    if (bad == BadSamples::fail) throw;
    unread.add(error.what());
    return std::nullopt;
  } catch (const IoError& error) {
    if (bad == BadSamples::fail) throw;
    unread.add(error.what());
    return std::nullopt;
  }
  CONCORD_CHECK(length.count, FormatError, "{}: does not say how long it is; give the seconds",
                printable(path.string()));
  return static_cast<double>(*length.count) / static_cast<double>(length.rate);
}

double longest_of(const AudioList& list, const std::string& name, BadSamples bad) {
  double longest = 0;
  std::int64_t longest_row = 0;
  LeftOut unread;
  const auto rows = static_cast<std::int64_t>(list.paths.size());
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::optional<double> seconds = seconds_of(list.path_of(row), bad, unread);
    if (seconds.value_or(0) > longest) longest = *seconds, longest_row = row;
  }
  CONCORD_CHECK(unread.count < rows, FormatError, "{}: none of the {} recordings can be read; the first: {}", name,
                rows, unread.first);
  if (unread.count > 0) {
    log(LogLevel::warning,
        fmt::format("{}: {} of {} recordings cannot be read; the longest of the others is the length of a sample. The "
                    "first: {}",
                    name, unread.count, rows, unread.first));
  }
  CONCORD_CHECK(longest > 0, FormatError, "{}: no recording has sound", name);
  CONCORD_CHECK(longest <= 600, ArgumentError, "{}: {} lasts {:.0f} s; give the seconds of a sample", name,
                printable(list.path_of(longest_row).string()), longest);
  return longest;
}

/// Classes [N, S] with zeros behind them.
Column transcript_column(const TranscriptList& list, const Alphabet& alphabet, const std::filesystem::path& file,
                         const AudioOptions& options, std::int64_t steps) {
  std::vector<std::vector<std::int32_t>> rows;
  std::size_t longest = 1;
  for (std::size_t i = 0; i < list.texts.size(); ++i) {
    const std::string place = fmt::format("{}, line {}", printable(file.string()), list.lines[i]);
    try {
      rows.push_back(alphabet.encode(list.texts[i]));
    } catch (const ArgumentError& error) {
      throw ArgumentError(fmt::format("{}: {}", place, error.what()));
    }
    CONCORD_CHECK(steps_for(rows.back()) <= steps, FormatError,
                  "{}: the transcript needs {} steps of the network, and a sample has {}", place,
                  steps_for(rows.back()), steps);
    longest = std::max(longest, rows.back().size());
  }
  CONCORD_CHECK(options.label_length == 0 || longest <= static_cast<std::size_t>(options.label_length), ArgumentError,
                "{}: a transcript has {} characters, and label_length is {}", printable(file.string()), longest,
                options.label_length);
  if (options.label_length > 0) longest = static_cast<std::size_t>(options.label_length);
  Column column;
  column.values = Tensor(DType::i32, Shape{static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(longest)});
  const auto values = column.values.values<std::int32_t>();
  std::fill(values.begin(), values.end(), 0);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::copy(rows[i].begin(), rows[i].end(), values.begin() + static_cast<std::ptrdiff_t>(i * longest));
  }
  return column;
}

}  // namespace

AudioSet audio(const std::filesystem::path& file, const AudioOptions& options) {
  check_options(options);
  const std::string name = fmt::format("list {}", printable(file.string()));
  AudioSet set{{}, options.features, options.alphabet};
  AudioList list;
  list.directory = absolute_path(file).parent_path();
  const std::string text = read_file(file);
  TranscriptList transcripts;
  if (options.transcripts) {
    transcripts = parse_transcript_list(text, file);
    list.paths = transcripts.paths;
  } else {
    SampleList samples = parse_sample_list(text, file, {.class_names = options.features.class_names});
    list.paths = std::move(samples.paths);
    list.labels = std::move(samples.labels);
    list.class_names = set.features.class_names = std::move(samples.class_names);
    if (list.labels[0].values.dtype() == DType::i32) warn_of_classes(name, list.labels[0], list.class_names);
  }
  check_samples(name, list.paths.size());
  if (set.features.seconds == 0) {
    const double longest = longest_of(list, name, options.bad_samples) * static_cast<double>(set.features.rate);
    set.features.seconds = std::ceil(longest) / static_cast<double>(set.features.rate);
  }
  if (options.transcripts) {
    if (set.alphabet.empty()) set.alphabet = characters_of(transcripts.texts);
    const std::int64_t steps = set.features.frames() / options.frames_per_step;
    const Alphabet alphabet(set.alphabet);
    set.classes = static_cast<int>(alphabet.size()) + 1;
    list.labels.push_back(transcript_column(transcripts, alphabet, file, options, steps));
  }
  const auto samples = std::make_shared<AudioSamples>(std::move(list), set.features, options);
  samples->name = name;
  set.samples = samples;
  return set;
}

SharedSamples recordings(const std::vector<std::filesystem::path>& files, const AudioFeatures& features,
                         bool is_whole) {
  features.check();
  CONCORD_CHECK(!files.empty() && features.seconds > 0, ArgumentError,
                "recordings need files and the seconds of a sample");
  AudioList list;
  for (const std::filesystem::path& file : files) list.paths.add(file.string());
  AudioOptions options;
  options.transcripts = is_whole;
  const auto samples = std::make_shared<AudioSamples>(std::move(list), features, options);
  samples->name = "recordings";
  samples->class_names = features.class_names;
  return samples;
}

}  // namespace concord::data
