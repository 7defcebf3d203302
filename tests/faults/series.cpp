// One session after another, each with its fault.
#include "faults/series.hpp"

#include <algorithm>
#include <exception>

#include "concord_test.hpp"

namespace concord::test {
namespace {

struct End {
  std::string error;  // empty: none
  std::optional<ErrorType> type;
  Outcome outcome;
};

std::optional<ErrorType> type_of(const std::exception& error) {
  if (dynamic_cast<const OutOfMemory*>(&error) != nullptr) return ErrorType::memory;
  if (dynamic_cast<const DeviceError*>(&error) != nullptr) return ErrorType::device;
  if (dynamic_cast<const NotSupported*>(&error) != nullptr) return ErrorType::unsupported;
  return std::nullopt;
}

End end_of(Workload session, const std::string& device) {
  try {
    return {{}, std::nullopt, session(device)};
  } catch (const std::exception& error) {
    return {error.what(), type_of(error), {}};
  }
}

std::map<faults::Site, faults::SiteCalls> calls_of(Workload session, const std::string& device) {
  faults::reset_calls();
  static_cast<void>(session(device));
  return faults::calls();
}

}  // namespace

/// A session, and what it and a product on the other device give without fault.
struct FaultSeries::Named {
  std::string name;
  Workload run;
  Outcome outcome, on_other;
  faults::Held held{};
};

Tally& Tally::operator+=(const Tally& more) {
  sites += more.sites;
  faults += more.faults;
  errors += more.errors;
  missed += more.missed;
  return *this;
}

std::string text_of(const Tallies& tallies) {
  std::string text;
  const auto add = [&](const std::string& name, const Tally& one) {
    text += name + ": " + std::to_string(one.sites) + " places, " + std::to_string(one.faults) + " faults, " +
            std::to_string(one.errors) + " errors";
    if (one.missed > 0) text += ", " + std::to_string(one.missed) + " not reached";
    text += "\n";
  };
  for (const auto& [function, one] : tallies) add(function, one);
  add("all", total(tallies));
  return text;
}

Tally total(const Tallies& tallies, const std::string& function) {
  Tally sum;
  for (const auto& [name, one] : tallies) {
    if (name.starts_with(function)) sum += one;
  }
  return sum;
}

const Rule* FaultSeries::rule_for(const faults::SiteCalls& calls) const {
  const auto fits = [&](const Rule& rule) {
    return rule.kind == calls.kind && calls.function.starts_with(rule.function);
  };
  const auto last = std::find_if(series_.rules.rbegin(), series_.rules.rend(), fits);
  return last == series_.rules.rend() ? nullptr : &*last;
}

bool FaultSeries::may_go_on(const faults::SiteCalls& calls, int status, const std::string& session) const {
  return std::ranges::any_of(series_.exceptions, [&](const Exception& one) {
    const bool is_in = one.in.empty() || std::ranges::find(one.in, session) != one.in.end();
    const bool is_status = one.statuses.empty() || std::ranges::find(one.statuses, status) != one.statuses.end();
    return one.kind == calls.kind && calls.function.starts_with(one.function) && is_status && is_in &&
           faults::name_at(calls.from).find(one.from) != std::string::npos;
  });
}

std::optional<bool> FaultSeries::ends_with_error(const Named& session, const faults::Fault& order,
                                                 const faults::SiteCalls& here, const Answer& answer) {
  std::optional<bool> has_error;
  {
    const faults::Ordered fault(order);
    const End end = end_of(session.run, series_.device);
    if (fault.happened()) has_error = !end.error.empty();
    if (!end.error.empty()) {
      INFO(end.error);
      CHECK(fault.happened());
      CHECK(end.type == answer.type);
      CHECK_THAT(end.error, contains(answer.name) || contains("by CLBlast failed"));  // which has codes of its own
      CHECK_THAT(end.error, contains(series_.name) || contains(series_.device));
      CHECK_THAT(end.error, contains("concord doctor") || contains("smaller batch"));
    } else {
      if (fault.happened()) CHECK(may_go_on(here, answer.status, session.name));
      CHECK(end.outcome == session.outcome);
    }
    CHECK(faults::held() == session.held);
  }
  CHECK(multiply(series_.other) == session.on_other);
  return has_error;
}

void FaultSeries::fail_at(const Named& session, faults::Site site, const faults::SiteCalls& here, const Rule& rule,
                          bool is_steady) {
  constexpr int kTries = 3;
  Tally& tally = tallies_[here.function];
  ++tally.sites;
  std::vector<std::uint64_t> which{1};
  if (is_steady && !series_.lasts && !rule.is_polling && here.calls > 1) which.push_back(here.calls);
  while (series_.each_answer && which.size() < rule.answers.size()) which.push_back(1);
  for (const std::uint64_t nth : which) {
    const Answer& answer = rule.answers[turn_++ % rule.answers.size()];
    INFO("call " << nth << " of " << here.calls << " of " << here.function << " from " << faults::name_at(here.from)
                 << " answers " << answer.name);
    const faults::Fault order{site, here.kind, nth, answer.status, series_.lasts};
    std::optional<bool> has_error;
    for (int i = 0; i < kTries && !has_error; ++i) has_error = ends_with_error(session, order, here, answer);
    if (!has_error) {
      CHECK(faults::calls()[site].calls < nth);  // of the last run: how often a comparison measures depends on time
      ++tally.missed;
    } else {
      ++tally.faults;
      tally.errors += *has_error ? 1 : 0;
    }
  }
}

void FaultSeries::run(const std::string& name, Workload session) {
  INFO("session " << name << " on " << series_.device);
  Named named{name, session, session(series_.device), multiply(series_.other)};  // kernels are built, tables filled
  named.held = faults::held();
  const auto calls = calls_of(session, series_.device), again = calls_of(session, series_.device);
  REQUIRE(faults::held() == named.held);
  for (const auto& [site, here] : calls) {
    const auto repeated = again.find(site);
    const Rule* const rule = rule_for(here);
    if (rule == nullptr || repeated == again.end() || !done_.insert(site).second) continue;
    fail_at(named, site, here, *rule, repeated->second.calls == here.calls);
  }
  CHECK(session(series_.device) == named.outcome);
}

}  // namespace concord::test
