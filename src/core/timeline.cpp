// The recorder of the timeline and its file.
#include "concord/core/timeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "concord/core/atomic_file.hpp"
#include "concord/core/check.hpp"
#include "concord/core/log.hpp"
#include "concord/core/platform.hpp"
#include "concord/core/timeline_label.hpp"

namespace concord::timeline {

std::atomic<bool> detail::is_recording{false};

namespace {

struct Entry {
  std::uint32_t track;
  Label label;
  Time begin, end;
  std::uint64_t bytes;
};

/// Names by number.
template <class Name>
class Table {
 public:
  std::uint32_t number(const Name& name) {
    const auto [at, added] = numbers_.try_emplace(name, static_cast<std::uint32_t>(names_.size()));
    if (added) names_.push_back(name);
    return at->second;
  }
  [[nodiscard]] const std::vector<Name>& names() const { return names_; }

 private:
  std::map<Name, std::uint32_t> numbers_;
  std::vector<Name> names_;
};

struct Text {
  std::string name, detail;
  std::string arguments;  // further members of "args" in JSON, each after a comma
  friend auto operator<=>(const Text&, const Text&) = default;
};

struct Recorder {
  std::mutex mutex;
  Table<Text> labels;
  Table<std::string> tracks;
  std::set<std::uint32_t> taken;  // tracks
  std::deque<Entry> entries;
  Time start = 0;
  bool in_use = false;
  std::mutex sources_mutex;
  std::set<Source*> sources;
};

// Never destroyed: threads may still record while the process ends.
Recorder& recorder() {
  static Recorder& instance = *new Recorder;  // NOLINT(cppcoreguidelines-owning-memory)
  return instance;
}

std::uint32_t take_track(std::string_view name) {
  Recorder& all = recorder();
  const std::lock_guard lock(all.mutex);
  for (int number = 1;; ++number) {
    const std::string numbered = number == 1 ? std::string(name) : fmt::format("{} {}", name, number);
    const std::uint32_t id = all.tracks.number(numbered);
    if (all.taken.insert(id).second) return id;
  }
}

void add_entry(const Entry& entry) {
  Recorder& all = recorder();
  const std::lock_guard lock(all.mutex);
  if (!recording() || entry.begin < all.start) return;
  try {
    all.entries.push_back(entry);
  } catch (const std::bad_alloc&) {  // spans end in destructors: the trace has what there was memory for
    detail::is_recording = false;
    return;
  }
  if (all.entries.size() < kMostSpans) return;
  detail::is_recording = false;
  log(LogLevel::warning, fmt::format("the trace is full: it contains the first {} spans", kMostSpans));
}

thread_local const char* own_name = nullptr;

/// Made for the first span, so that a thread without one has nothing to destroy.
const Track& own_track() {
  thread_local const Track track(own_name != nullptr ? own_name : in_main_thread() ? "host" : "thread");
  return track;
}

std::string json_text(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  return out + '"';
}

constexpr std::string_view kHead =
    "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n"
    "{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{\"name\":\"concord\"}}";

/// Text on its way into a file, in pieces.
class Writer {
 public:
  explicit Writer(AtomicFile& file) : file_(file) {}
  void write(std::string_view text) {
    text_ += text;
    if (text_.size() > kPiece) flush();
  }
  void flush() {
    file_.write(std::as_bytes(std::span(text_)));
    text_.clear();
  }

 private:
  static constexpr std::size_t kPiece = std::size_t{1} << 20;
  AtomicFile& file_;
  std::string text_;
};

void write_track(Writer& writer, std::uint32_t track, const std::string& name) {
  writer.write(fmt::format(",\n{{\"ph\":\"M\",\"pid\":1,\"tid\":{},\"name\":\"thread_name\",\"args\":{{\"name\":{}}}}}",
                           track, json_text(name)));
}

void write_entry(Writer& writer, const Entry& entry, const Text& label, Time start) {
  const auto microseconds = [](Time time) { return static_cast<double>(time) / 1e3; };
  std::string args;
  if (!label.detail.empty()) args = ",\"detail\":" + json_text(label.detail);
  if (entry.bytes > 0) args += fmt::format(",\"bytes\":{}", entry.bytes);
  args += label.arguments;
  if (!args.empty()) args.erase(0, 1);
  writer.write(fmt::format(
      ",\n{{\"ph\":\"X\",\"pid\":1,\"tid\":{},\"ts\":{:.3f},\"dur\":{:.3f},\"name\":{},\"args\":{{{}}}}}", entry.track,
      microseconds(entry.begin - start), microseconds(entry.end - entry.begin), json_text(label.name), args));
}

}  // namespace

Time now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Label label(std::string_view name, std::string_view detail) {
  Recorder& all = recorder();
  const std::lock_guard lock(all.mutex);
  return all.labels.number({std::string(name), std::string(detail), {}});
}

Label label_with(std::string_view name, std::string_view detail, const Arguments& arguments) {
  std::string text;
  for (const auto& [key, value] : arguments) {
    text += fmt::format(",{}:", json_text(key));
    const auto* number = std::get_if<std::uint64_t>(&value);
    text += number != nullptr ? std::to_string(*number) : json_text(std::get<std::string>(value));
  }
  Recorder& all = recorder();
  const std::lock_guard lock(all.mutex);
  return all.labels.number({std::string(name), std::string(detail), text});
}

Track::Track(std::string_view name) : id_(take_track(name)) {}

Track::~Track() {
  Recorder& all = recorder();
  const std::lock_guard lock(all.mutex);
  all.taken.erase(id_);
}

Source::Source(std::function<void()> collect) : collect_(std::move(collect)) {
  const std::lock_guard lock(recorder().sources_mutex);
  recorder().sources.insert(this);
}

Source::~Source() {
  const std::lock_guard lock(recorder().sources_mutex);
  recorder().sources.erase(this);
}

void name_thread(const char* name) { own_name = name; }

void add(const Track& track, Label label, Time begin, Time end, std::uint64_t bytes) {
  if (recording()) add_entry({track.id(), label, begin, std::max(begin, end), bytes});
}

void Span::begin(const char* name) {
  if (track_ == nullptr) track_ = &own_track();
  if (name != nullptr) label_ = label(name);
  begin_ = now();
}

void Span::end() const { add(*track_, label_, begin_, now(), bytes_); }

Recording::Recording(const std::filesystem::path& path) : file_(std::make_unique<AtomicFile>(path)) {
  file_->write(std::as_bytes(std::span(kHead)));
  Recorder& all = recorder();
  const std::lock_guard lock(all.mutex);
  CONCORD_CHECK(!std::exchange(all.in_use, true), ArgumentError, "{}: another trace is being recorded", path.string());
  all.entries.clear();
  all.start = now();
  detail::is_recording = true;
}

Recording::~Recording() {
  if (finished_) return;
  Recorder& all = recorder();
  const std::lock_guard lock(all.mutex);
  detail::is_recording = false;
  all.in_use = false;
}

void Recording::finish() {
  Recorder& all = recorder();
  {
    const std::lock_guard lock(all.sources_mutex);
    for (Source* source : all.sources) source->collect_();
  }
  const std::lock_guard lock(all.mutex);
  detail::is_recording = false;
  all.in_use = false;
  finished_ = true;
  // A span comes before those within it.
  std::ranges::stable_sort(all.entries, {}, [](const Entry& e) { return std::tuple(e.track, e.begin, -e.end); });
  Writer writer(*file_);
  for (auto entry = all.entries.begin(); entry != all.entries.end(); ++entry) {
    const bool is_first = entry == all.entries.begin() || std::prev(entry)->track != entry->track;
    if (is_first) write_track(writer, entry->track, all.tracks.names()[entry->track]);
    write_entry(writer, *entry, all.labels.names()[entry->label], all.start);
  }
  writer.write("\n]}\n");
  writer.flush();
  file_->commit(Durability::cached);
  all.entries.clear();
}

void record(const std::filesystem::path& path, const std::function<void()>& work) {
  if (path.empty()) return work();
  Recording recording(path);
  try {
    work();
  } catch (...) {
    try {
      recording.finish();
    } catch (const Error& error) {
      log(LogLevel::error, error.what());
    }
    throw;
  }
  recording.finish();
}

}  // namespace concord::timeline
