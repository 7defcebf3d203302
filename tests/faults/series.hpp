// A series of faults, one at each place that calls: which, and what must hold after each.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "faults/faults.hpp"
#include "faults/session.hpp"

namespace concord::test {

/// A DeviceError that is no OutOfMemory, an OutOfMemory, or NotSupported.
enum class ErrorType : std::uint8_t { device, memory, unsupported };

/// What a call answers, and what a user reads of it.
struct Answer {
  int status;
  std::string name;
  ErrorType type;
};

struct Rule {
  faults::Kind kind;
  std::string function;         // what its name begins with; empty: all of the kind
  std::vector<Answer> answers;  // by turns
  bool is_polling = false;      // how often it is called depends on time: the first call alone fails
};

/// A failure that a session need not end with.
struct Exception {
  faults::Kind kind;
  std::string function;         // what its name begins with; empty: all of the kind
  std::vector<int> statuses;    // empty: whatever it answers
  std::vector<std::string> in;  // the sessions; empty: all
  std::string from;             // in the caller's name
  std::string why;
};

struct Series {
  std::string device;       // its id
  std::string name;         // of it, as messages have it
  std::string other;        // the id of another device, which must go on
  std::vector<Rule> rules;  // the last that fits counts; a call that none fits does not fail
  std::vector<Exception> exceptions = {};
  bool lasts = false;        // from the call on all fail, of whatever kind
  bool each_answer = false;  // every place gives every answer
};

/// What was done at the places that call a function.
struct Tally {
  std::size_t sites = 0, faults = 0, errors = 0;
  std::size_t missed = 0;  // last calls that no run made any more
  Tally& operator+=(const Tally& more);
};
using Tallies = std::map<std::string, Tally>;  // by function

/// "clFinish: 17 places, 34 faults, 30 errors", a line each, and what they come to.
[[nodiscard]] std::string text_of(const Tallies& tallies);
/// Of the functions whose names begin so.
[[nodiscard]] Tally total(const Tallies& tallies, const std::string& function = {});

class FaultSeries {
 public:
  explicit FaultSeries(Series series) : series_(std::move(series)) {}

  /// Runs the session with the first call of each place failing, and with the last where two runs make as many calls;
  /// places that an earlier session had are left out. Each time the session ends with a
  /// concord::Error that names the failure, the device and what to do, or, if it is one of the exceptions, with the
  /// bits of a run without fault; no handle is left; and the other device works. After the series the device does as if
  /// nothing had been.
  void run(const std::string& name, Workload session);
  [[nodiscard]] const Tallies& tallies() const { return tallies_; }

 private:
  struct Named;
  [[nodiscard]] const Rule* rule_for(const faults::SiteCalls& calls) const;
  [[nodiscard]] bool may_go_on(const faults::SiteCalls& calls, int status, const std::string& session) const;
  void fail_at(const Named& session, faults::Site site, const faults::SiteCalls& here, const Rule& rule,
               bool is_steady);
  /// Nothing where the fault did not happen, since this run made fewer calls.
  [[nodiscard]] std::optional<bool> ends_with_error(const Named& session, const faults::Fault& order,
                                                    const faults::SiteCalls& here, const Answer& answer);

  Series series_;
  Tallies tallies_;
  std::set<faults::Site> done_;
  std::size_t turn_ = 0;
};

}  // namespace concord::test
