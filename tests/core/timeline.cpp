// The timeline: what is recorded when, and its file.
#include "concord/core/timeline.hpp"

#include <thread>

#include "timeline.hpp"

using namespace concord;
using namespace concord::test;

TEST_CASE("spans nest on the track of their thread", "[core]") {
  const TemporaryFolder folder;
  timeline::Recording recording(folder / "trace.json");
  const timeline::Track track("a \"queue\"\n");
  {
    const timeline::Span outer("outer");
    const timeline::Span inner("inner");
    const timeline::Span copy("copy", track, 64);
    const timeline::Span kernel(timeline::label("kernel", "of what"), track);
  }
  std::thread([] {
    timeline::name_thread("worker");
    const timeline::Span span("work");
  }).join();
  recording.finish();
  CHECK_FALSE(timeline::recording());
  const Tracks tracks = read_trace(folder / "trace.json");
  CHECK(tracks.size() == 3);
  CHECK(has_span(tracks, "host", "outer"));
  CHECK(has_span(tracks, "worker", "work"));
  const std::vector<TracedSpan>& host = tracks.at("host");
  REQUIRE(host.size() == 2);
  CHECK(host[1].name == "inner");
  CHECK(host[1].begin >= host[0].begin);
  CHECK(host[1].end <= host[0].end);
  REQUIRE(has_span(tracks, "a \"queue\"\n", "kernel"));
  CHECK(tracks.at("a \"queue\"\n")[1].detail == "of what");
}

TEST_CASE("nothing is recorded outside a recording", "[core]") {
  const TemporaryFolder folder;
  const timeline::Track track("queue");
  const timeline::Label label = timeline::label("work");
  const timeline::Time early = timeline::now();
  { const timeline::Span before("before"); }
  timeline::add(track, label, early, early + 1);
  timeline::Recording recording(folder / "trace.json");
  timeline::add(track, label, early, timeline::now());  // a device's, from before
  recording.finish();
  { const timeline::Span after("after"); }
  CHECK(read_trace(folder / "trace.json").empty());
}

TEST_CASE("tracks of one name are told apart while both live", "[core]") {
  const TemporaryFolder folder;
  timeline::Recording recording(folder / "trace.json");
  const auto put = [](const timeline::Track& track, const char* name) { const timeline::Span span(name, track, 0); };
  {
    const timeline::Track first("queue"), second("queue");
    put(first, "one");
    put(second, "two");
  }
  put(timeline::Track("queue"), "three");
  recording.finish();
  const Tracks tracks = read_trace(folder / "trace.json");
  CHECK(has_span(tracks, "queue", "one"));
  CHECK(has_span(tracks, "queue 2", "two"));
  CHECK(has_span(tracks, "queue", "three"));
}

TEST_CASE("a source adds its spans at the end of a recording", "[core]") {
  const TemporaryFolder folder;
  timeline::Recording recording(folder / "trace.json");
  const timeline::Track track("queue");
  const timeline::Source source(
      [&] { timeline::add(track, timeline::label("late"), timeline::now(), timeline::now()); });
  recording.finish();
  CHECK(has_span(read_trace(folder / "trace.json"), "queue", "late"));
}

TEST_CASE("a trace that cannot be written is told at once, and leaves what was there", "[core]") {
  const TemporaryFolder folder;
  CHECK_THROWS_AS(timeline::Recording(folder / "missing" / "trace.json"), IoError);
  CHECK_THROWS_AS(timeline::Recording(folder.path()), IoError);
  CHECK_FALSE(timeline::recording());
  write_file(folder / "trace.json", "the last one");
  {
    timeline::Recording unfinished(folder / "trace.json");
    CHECK_THROWS_AS(timeline::Recording(folder / "other.json"), ArgumentError);
    CHECK(timeline::recording());
  }
  CHECK_FALSE(timeline::recording());
  CHECK(content_of(folder / "trace.json") == "the last one");
  CHECK_FALSE(std::filesystem::exists(folder / "other.json"));
}
