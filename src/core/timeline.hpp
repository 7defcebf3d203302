// Timeline: records spans of time on tracks, one track for each host thread and for each queue of a device. The option
// `--trace` of the commands writes it as a Chrome trace. A process has one recorder. While it is off, a span costs one
// read of a flag.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string_view>

#include "concord/core/export.hpp"

namespace concord {
class AtomicFile;
}

namespace CONCORD_PUBLIC concord {
namespace timeline {

namespace detail {
extern std::atomic<bool> is_recording;
}

/// Returns whether the recorder is on.
[[nodiscard]] inline bool recording() { return detail::is_recording.load(std::memory_order_relaxed); }

/// Nanoseconds of the steady clock.
using Time = std::int64_t;
[[nodiscard]] Time now();

/// The text of a span: a name, and a detail such as the kernel and its shapes. Valid until the process ends.
using Label = std::uint32_t;
[[nodiscard]] Label label(std::string_view name, std::string_view detail = {});

/// A row of the timeline with one writer. Its name is `name`, or "name 2", "name 3", … if other tracks have that name.
class Track {
 public:
  explicit Track(std::string_view name);
  ~Track();
  Track(const Track&) = delete;
  Track& operator=(const Track&) = delete;
  [[nodiscard]] std::uint32_t id() const { return id_; }

 private:
  std::uint32_t id_;
};

/// Names the track of the calling thread, until the thread ends. Call it before the first span of the thread. `name` is
/// a string literal; equal names are numbered as those of other tracks. The default is "host" for the first thread of
/// the process, and "thread" for every other thread.
void name_thread(const char* name);

/// Adds a span to a track. `bytes` is the number of bytes moved, or 0. Does nothing while the recorder is off.
void add(const Track& track, Label label, Time begin, Time end, std::uint64_t bytes = 0);

/// A source of spans that are known only after they ended, such as a device with its own clock.
class Source {
 public:
  /// The end of a recording calls `collect`, which adds the missing spans.
  explicit Source(std::function<void()> collect);
  ~Source();
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

 private:
  friend class Recording;
  std::function<void()> collect_;
};

/// A span from its construction to the end of the scope, on the track of this thread or on `track`. `name` is a string
/// literal.
class Span {
 public:
  explicit Span(const char* name) {
    if (recording()) begin(name);
  }
  Span(const char* name, const Track& track, std::uint64_t bytes) : track_(&track), bytes_(bytes) {
    if (recording()) begin(name);
  }
  Span(Label label, const Track& track) : track_(&track), label_(label) {
    if (recording()) begin(nullptr);
  }
  ~Span() {
    if (begin_ != kOff) end();
  }
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

 private:
  static constexpr Time kOff = -1;
  void begin(const char* name);
  void end() const;

  const Track* track_ = nullptr;
  Label label_ = 0;
  std::uint64_t bytes_ = 0;
  Time begin_ = kOff;
};

/// The most spans that a recording holds. Later spans are dropped, with a warning.
inline constexpr std::size_t kMostSpans = std::size_t{1} << 20;

/// Records into a file in Chrome's trace-event format, for https://ui.perfetto.dev and chrome://tracing.
class Recording {
 public:
  /// Starts recording. Opens the file at once, so that an unwritable path fails before the work starts. An existing
  /// file stays until `finish`. Throws IoError, and ArgumentError if another recording is in progress.
  explicit Recording(const std::filesystem::path& path);
  /// Stops a recording without `finish` and writes no file.
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  /// Stops the recording, waits for all devices and writes the file completely or not at all. No other thread may use a
  /// device during the call. Throws IoError.
  void finish();

 private:
  std::unique_ptr<AtomicFile> file_;
  bool finished_ = false;
};

/// Calls `work`. If `path` is not empty, records the call and writes the file at its end, also when `work` throws.
/// Throws as Recording does.
void record(const std::filesystem::path& path, const std::function<void()>& work);

}  // namespace timeline
}  // namespace concord
