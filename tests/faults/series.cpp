// One session after another, each with its fault.
#include "faults/series.hpp"

#include <algorithm>
#include <numeric>
#include <set>

#include "concord_test.hpp"

namespace concord::test {
namespace {

std::uint64_t calls_of(const std::optional<faults::Kind>& kind) {
  if (kind) return faults::calls(*kind);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < faults::kKinds; ++i) sum += faults::calls(static_cast<faults::Kind>(i));
  return sum;
}

/// Of 1 to `calls`: the first, the last and what lies evenly between.
std::set<std::uint64_t> spread(std::uint64_t calls, std::size_t most) {
  std::set<std::uint64_t> places;
  const std::uint64_t count = std::min<std::uint64_t>(calls, most);
  for (std::uint64_t i = 0; i < count; ++i) places.insert(1 + i * (calls - 1) / std::max<std::uint64_t>(count - 1, 1));
  return places;
}

struct End {
  std::optional<std::string> error;
  std::optional<ErrorType> type;  // none of another type
  Outcome outcome;
};

std::optional<ErrorType> type_of(const Error& error) {
  if (dynamic_cast<const OutOfMemory*>(&error) != nullptr) return ErrorType::memory;
  if (dynamic_cast<const DeviceError*>(&error) != nullptr) return ErrorType::device;
  if (dynamic_cast<const NotSupported*>(&error) != nullptr) return ErrorType::unsupported;
  return std::nullopt;
}

End run(Session session, const std::string& device) {
  try {
    return {std::nullopt, std::nullopt, session(device)};
  } catch (const Error& error) {
    return {error.what(), type_of(error), {}};
  }
}

void check_message(const std::string& message, const std::string& status, const std::string& device_name) {
  INFO(message);
  CHECK_THAT(message, contains(status));
  CHECK_THAT(message, contains(device_name));
  CHECK_THAT(message, contains("concord doctor") || contains("smaller batch"));
}

}  // namespace

std::size_t check_series(Session session, const Series& series, std::size_t most) {
  const Outcome clean_on_cpu = session("cpu");
  const faults::Held before = faults::held();
  faults::reset_calls();
  const Outcome clean = session(series.device);
  const std::uint64_t calls = calls_of(series.kind);
  REQUIRE(calls > 0);
  REQUIRE(faults::held() == before);
  std::size_t errors = 0, turn = 0, happened = 0;
  for (const std::uint64_t nth : spread(calls, most)) {
    const Answer& answer = series.answers[turn++ % series.answers.size()];
    CAPTURE(nth, calls, answer.name);
    {
      const faults::Ordered fault({series.kind, nth, answer.status, !series.kind});
      const End end = run(session, series.device);
      CAPTURE(fault.function());
      happened += fault.happened() ? 1 : 0;
      if (end.error) {
        check_message(*end.error, answer.name, series.name);
        CHECK(end.type == answer.type);
        ++errors;
      } else {
        for (const auto& [name, bytes] : clean) {
          INFO(name);
          CHECK(end.outcome.at(name) == bytes);
        }
        CHECK(end.outcome.size() == clean.size());
      }
      CHECK(faults::held() == before);
    }
    CHECK(session("cpu") == clean_on_cpu);
  }
  CHECK(happened > 0);  // a later session may make fewer calls, since it finds programs built
  CHECK(session(series.device) == clean);
  return errors;
}

}  // namespace concord::test
