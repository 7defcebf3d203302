// Timeline: what happened when, in spans on tracks: a track for each host thread and for each queue of a device.
// Recorded for `--trace` of the commands, written as a Chrome trace. One recorder for the process, used by every room;
// while it is off a span costs a look at one flag.
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

/// Whether spans are kept now.
[[nodiscard]] inline bool recording() { return detail::is_recording.load(std::memory_order_relaxed); }

/// Nanoseconds of the steady clock.
using Time = std::int64_t;
[[nodiscard]] Time now();

/// What a span shows: a name, and a detail such as kernel and shapes. Valid as long as the process lives.
using Label = std::uint32_t;
[[nodiscard]] Label label(std::string_view name, std::string_view detail = {});

/// A row of the timeline that nobody else writes to: `name`, or "name 2" while another Track has that, and so on.
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

/// The calling thread's row is called `name`, a literal (numbered like other tracks), until the thread ends. Said before
/// the thread's first span. Threads that do not say are "host", the process's first, or "thread".
void name_thread(const char* name);

/// Adds a span of `bytes` (0: does not move any) to a track; nothing while the recorder is off.
void add(const Track& track, Label label, Time begin, Time end, std::uint64_t bytes = 0);

/// Whoever adds spans later than they ended, such as a device that has to be asked for times.
class Source {
 public:
  /// `collect` adds what is missing; called at the end of a recording.
  explicit Source(std::function<void()> collect);
  ~Source();
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

 private:
  friend class Recording;
  std::function<void()> collect_;
};

/// A span from here to the end of the scope, on this thread's track or on `track`. `name` is a literal.
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

/// Spans that one recording holds; later ones are left out with a warning.
inline constexpr std::size_t kMostSpans = std::size_t{1} << 20;

/// A recording into a file: Chrome's trace-event format, for https://ui.perfetto.dev and chrome://tracing.
class Recording {
 public:
  /// Starts to record. The file is begun now, so that a place that cannot be written is told before the work; what was
  /// at the path stays until `finish`. Throws IoError, ArgumentError when a recording is under way.
  explicit Recording(const std::filesystem::path& path);
  /// Ends a recording that was not finished; nothing is written.
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  /// Ends the recording and writes the file, whole or not at all. No device may be in use by another thread: each is
  /// waited for. Throws IoError.
  void finish();

 private:
  std::unique_ptr<AtomicFile> file_;
  bool finished_ = false;
};

/// Does `work`; with a file, not an empty path, records it, and writes the file at its end, also when it throws. Throws
/// as Recording does.
void record(const std::filesystem::path& path, const std::function<void()>& work);

}  // namespace timeline
}  // namespace concord
