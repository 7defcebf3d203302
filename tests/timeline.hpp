// A trace file as the tests look at it: the spans of each track, and whether they make sense.
#pragma once

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "files.hpp"

namespace concord::test {

struct TracedSpan {
  std::string name, detail;
  double begin, end;  // microseconds
};
using Tracks = std::map<std::string, std::vector<TracedSpan>>;

/// By the tracks' names, in the order of the file. Fails the test when a span has no named track, ends before it
/// begins, lies before the recording, or overlaps another of its track without lying within it.
inline Tracks read_trace(const std::filesystem::path& path) {
  const auto document = nlohmann::json::parse(content_of(path));
  std::map<int, std::string> names;
  Tracks tracks;
  for (const auto& event : document.at("traceEvents")) {
    if (event.at("name") == "thread_name") names[event.at("tid")] = event.at("args").at("name");
  }
  for (const auto& event : document.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    REQUIRE(names.contains(event.at("tid")));
    const double begin = event.at("ts"), length = event.at("dur");
    CHECK(begin >= 0);
    CHECK(length >= 0);
    tracks[names[event.at("tid")]].push_back(
        {event.at("name"), event.at("args").value("detail", ""), begin, begin + length});
  }
  constexpr double kDigit = 1e-3;  // nanoseconds are written
  for (const auto& [track, spans] : tracks) {
    INFO(track);
    std::vector<double> open;  // ends of the spans that this one may lie within
    for (const TracedSpan& span : spans) {
      while (!open.empty() && open.back() <= span.begin + kDigit / 2) open.pop_back();
      INFO(span.name << " at " << span.begin);
      CHECK((open.empty() || span.end <= open.back() + kDigit / 2));
      open.push_back(span.end);
    }
  }
  return tracks;
}

inline bool has_span(const Tracks& tracks, const std::string& track, const std::string& name) {
  const auto found = tracks.find(track);
  return found != tracks.end() &&
         std::ranges::any_of(found->second, [&](const TracedSpan& span) { return span.name == name; });
}

}  // namespace concord::test
