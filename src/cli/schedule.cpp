// Schedules by name: a table of names, their keys and what makes them.
#include "concord/cli/schedule.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string_view>
#include <vector>

#include "concord/cli/counted.hpp"
#include "concord/core/check.hpp"
#include "concord/core/nearest_name.hpp"
#include "concord/core/text.hpp"

namespace concord::cli {
namespace {

namespace schedule = optim::schedule;

/// What stands behind a schedule's colon.
class Numbers {
 public:
  Numbers(std::string_view name, std::string_view text) : name_(name) {
    for (const std::string& field : text.empty() ? std::vector<std::string>{} : split(text, ',')) {
      const std::size_t equal = field.find('=');
      CONCORD_CHECK(equal != std::string::npos && equal > 0, ArgumentError, "{}: '{}' is not key=value", name, field);
      CONCORD_CHECK(values_.emplace(field.substr(0, equal), field.substr(equal + 1)).second, ArgumentError,
                    "{}: {} is given twice", name, field.substr(0, equal));
    }
  }

  [[nodiscard]] bool has(const std::string& key) const { return values_.contains(key); }
  double real(const std::string& key, double otherwise, double least, double most) {
    return has(key) ? number(key, values_.at(key), least, most) : otherwise;
  }
  std::int64_t whole(const std::string& key, std::int64_t otherwise) {
    return has(key) ? whole_number(key, values_.at(key)) : std::max<std::int64_t>(1, otherwise);
  }
  std::vector<std::int64_t> list(const std::string& key) {
    CONCORD_CHECK(has(key), ArgumentError, "{} needs {}, as in {}:{}=30+60", name_, key, name_, key);
    std::vector<std::int64_t> numbers;
    for (const std::string& one : split(values_.at(key), '+')) numbers.push_back(whole_number(key, one));
    return numbers;
  }
  void check_keys(const std::vector<std::string>& keys) const {
    for (const auto& [key, value] : values_) {
      CONCORD_CHECK(std::ranges::find(keys, key) != keys.end(), ArgumentError, "the schedule {} has no '{}'; {}", name_,
                    key, keys.empty() ? "it has no parameters" : fmt::format("it has {}", fmt::join(keys, ", ")));
    }
  }

 private:
  double number(const std::string& key, const std::string& text, double least, double most) const {
    const auto value = number_in_text<double>(text);
    CONCORD_CHECK(value && *value >= least && *value <= most, ArgumentError,
                  "{}: {} is '{}', not a number from {} to {}", name_, key, text, least, most);
    return *value;
  }
  std::int64_t whole_number(const std::string& key, const std::string& text) const {
    const double value = number(key, text, 1, std::numeric_limits<std::int32_t>::max());
    CONCORD_CHECK(value == std::floor(value), ArgumentError, "{}: {} is '{}', not an integer", name_, key, text);
    return static_cast<std::int64_t>(value);
  }

  std::string name_;
  std::map<std::string, std::string> values_;
};

constexpr double kMost = std::numeric_limits<float>::max();

double end_of(Numbers& numbers) { return numbers.real("end", 0, 0, kMost); }
double gamma_of(Numbers& numbers) { return numbers.real("gamma", 0.1, 0, 1); }

struct NamedSchedule {
  std::string_view name;
  std::vector<std::string> keys;
  optim::Schedule (*make)(Numbers& numbers, std::int64_t epochs);
  bool can_warm_up = true;
};

const std::vector<NamedSchedule>& all() {
  static const std::vector<NamedSchedule> schedules{
      {"constant", {}, [](Numbers&, std::int64_t) { return schedule::constant(); }},
      {"cosine", {"end"}, [](Numbers& n, std::int64_t epochs) { return schedule::cosine(epochs, end_of(n)); }},
      {"linear", {"end"}, [](Numbers& n, std::int64_t epochs) { return schedule::polynomial(epochs, 1, end_of(n)); }},
      {"polynomial",
       {"power", "end"},
       [](Numbers& n, std::int64_t epochs) {
         return schedule::polynomial(epochs, n.real("power", 2, 0, 100), end_of(n));
       }},
      {"step",
       {"size", "gamma"},
       [](Numbers& n, std::int64_t epochs) { return schedule::step(n.whole("size", epochs / 3), gamma_of(n)); }},
      {"multistep",
       {"at", "gamma"},
       [](Numbers& n, std::int64_t) { return schedule::multistep(n.list("at"), gamma_of(n)); }},
      {"exponential",
       {"gamma"},
       [](Numbers& n, std::int64_t) { return schedule::exponential(n.real("gamma", 0.9, 0, 1)); }},
      {"restarts",
       {"length", "growth", "end"},
       [](Numbers& n, std::int64_t epochs) {  // by default 1 + 2 + 4 parts
         return schedule::cosine_restarts(n.whole("length", epochs / 7), n.whole("growth", 2), end_of(n));
       }},
      {"inverse-sqrt",
       {"warmup"},
       [](Numbers& n, std::int64_t epochs) {
         return schedule::inverse_square_root(n.whole("warmup", epochs / 10), optim::Unit::epoch);
       },
       false},
      {"plateau",
       {"factor", "patience", "end"},
       [](Numbers& n, std::int64_t) {
         return schedule::plateau(
             {.factor = n.real("factor", 0.1, 1e-6, 0.999999), .patience = n.whole("patience", 3), .end = end_of(n)});
       },
       false},
      {"one-cycle",
       {"rise"},
       [](Numbers& n, std::int64_t epochs) {
         return schedule::one_cycle(epochs, {.rise = n.real("rise", 0.3, 0, 1), .unit = optim::Unit::epoch});
       },
       false},
  };
  return schedules;
}

}  // namespace

optim::Schedule make_schedule(const std::string& text, std::int64_t epochs) {
  const std::size_t colon = std::min(text.find(':'), text.size());
  const std::string name = text.substr(0, colon);
  const auto found = std::ranges::find(all(), name, &NamedSchedule::name);
  if (found == all().end()) {
    std::vector<std::string> names;
    for (const NamedSchedule& named : all()) names.emplace_back(named.name);
    const auto meant = nearest_name(name, names);
    throw ArgumentError(fmt::format("there is no schedule '{}'{} There are {}", name,
                                    meant ? fmt::format("; did you mean {}?", *meant) : ".", fmt::join(names, ", ")));
  }
  CONCORD_CHECK(colon + 1 != text.size(), ArgumentError, "nothing follows the colon in {}", text);
  Numbers numbers(name, colon < text.size() ? text.substr(colon + 1) : std::string());
  std::vector<std::string> keys = found->keys;
  if (found->can_warm_up) keys.emplace_back("warmup");
  numbers.check_keys(keys);
  if (!found->can_warm_up || !numbers.has("warmup")) return found->make(numbers, epochs);
  const std::int64_t warmup = numbers.whole("warmup", 1);
  CONCORD_CHECK(warmup < epochs, ArgumentError, "{}: the warmup of {} leaves none of {}", text,
                counted(warmup, "epoch"), epochs);
  return schedule::warmup(warmup, found->make(numbers, epochs - warmup), 1.0 / 3, optim::Unit::epoch);
}

CLI::Validator schedule_text() {
  const auto refusal = [](const std::string& text) {
    try {
      static_cast<void>(make_schedule(text, std::numeric_limits<std::int32_t>::max()));
      return std::string();
    } catch (const ArgumentError& error) {
      return std::string(error.what());
    }
  };
  return {refusal, "NAME[:KEY=VALUE,…]", {}};
}

}  // namespace concord::cli
