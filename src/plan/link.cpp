// The grammar of links, files of measured exchanges, and the fit.
#include "concord/plan/link.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include "concord/core/check.hpp"
#include "concord/core/text.hpp"
#include "concord/core/utf8.hpp"

namespace concord::plan {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};
constexpr std::array kTimes{Unit{"ms", 1e-3}, Unit{"us", 1e-6}, Unit{"ns", 1e-9}, Unit{"s", 1}};
constexpr std::array kBandwidths{Unit{"GB/s", 1e9}, Unit{"MB/s", 1e6}, Unit{"Gbit/s", 1.25e8}, Unit{"Mbit/s", 1.25e5}};

/// "20us" in the unit of factor 1.
template <class Units>
double quantity(std::string_view text, std::string_view key, std::string_view value, const Units& units,
                std::string_view names) {
  for (const Unit& unit : units) {
    if (!value.ends_with(unit.name)) continue;
    const auto number = number_in_text<double>(value.substr(0, value.size() - unit.name.size()));
    if (number && std::isfinite(*number) && *number >= 0) return *number * unit.factor;
    break;
  }
  throw ArgumentError(fmt::format("link '{}': {} is '{}'; it must be a number of 0 or more with a unit: {}",
                                  printable(text), key, printable(value), names));
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

/// Latency, gap, time of a byte, time of a byte's sum.
constexpr std::size_t kUnknowns = 4;
using Unknowns = std::array<double, kUnknowns>;

/// The time of an exchange is the sum of these times the unknowns (simulation.hpp, all to all, without overhead).
Unknowns terms_of(const MeasuredExchange& exchange) {
  const double others = exchange.ranks - 1;
  return {2, 2 * others, 2 * others / exchange.ranks * exchange.bytes, exchange.bytes};
}

double time_of(const MeasuredExchange& exchange, const Unknowns& values) {
  const Unknowns terms = terms_of(exchange);
  double time = 0;
  for (std::size_t i = 0; i < kUnknowns; ++i) time += terms[i] * values[i];
  return time;
}

/// Solves A·x = b for the unknowns in `used`; nothing if they are not determined.
std::optional<Unknowns> solved(std::array<Unknowns, kUnknowns> a, Unknowns b, const std::vector<std::size_t>& used) {
  for (std::size_t k = 0; k < used.size(); ++k) {
    const auto largest = std::max_element(
        used.begin() + static_cast<std::ptrdiff_t>(k), used.end(),
        [&](std::size_t x, std::size_t y) { return std::abs(a[x][used[k]]) < std::abs(a[y][used[k]]); });
    std::swap(a[used[k]], a[*largest]);
    std::swap(b[used[k]], b[*largest]);
    const double pivot = a[used[k]][used[k]];
    if (std::abs(pivot) < 1e-12) return {};
    for (const std::size_t row : used) {
      if (row == used[k]) continue;
      const double factor = a[row][used[k]] / pivot;
      for (const std::size_t column : used) a[row][column] -= factor * a[used[k]][column];
      b[row] -= factor * b[used[k]];
    }
  }
  Unknowns x{};
  for (const std::size_t i : used) x[i] = b[i] / a[i][i];
  return x;
}

/// The best non-negative unknowns of these, by all their subsets.
Unknowns least_squares(std::span<const MeasuredExchange> exchanges, unsigned allowed) {
  // Columns are scaled to 1, so that a small pivot means that they depend on each other.
  Unknowns scale{};
  for (const MeasuredExchange& exchange : exchanges) {
    const Unknowns terms = terms_of(exchange);
    for (std::size_t i = 0; i < kUnknowns; ++i) scale[i] = std::max(scale[i], terms[i] / exchange.seconds);
  }
  std::array<Unknowns, kUnknowns> products{};
  Unknowns targets{};
  for (const MeasuredExchange& exchange : exchanges) {
    const Unknowns terms = terms_of(exchange);
    for (std::size_t i = 0; i < kUnknowns; ++i) {
      const double one = terms[i] / exchange.seconds / scale[i];
      targets[i] += one;
      for (std::size_t k = 0; k < kUnknowns; ++k) products[i][k] += one * terms[k] / exchange.seconds / scale[k];
    }
  }
  Unknowns best{};
  double least = std::numeric_limits<double>::infinity();
  for (unsigned subset = 1; subset < 1U << kUnknowns; ++subset) {
    if ((subset & ~allowed) != 0) continue;
    std::vector<std::size_t> used;
    for (std::size_t i = 0; i < kUnknowns; ++i) {
      if ((subset >> i & 1) != 0) used.push_back(i);
    }
    std::optional<Unknowns> found = solved(products, targets, used);
    if (!found || std::ranges::any_of(*found, [](double x) { return !(x >= 0); })) continue;
    for (std::size_t i = 0; i < kUnknowns; ++i) (*found)[i] /= scale[i];
    double deviation = 0;
    for (const MeasuredExchange& exchange : exchanges) {
      deviation += std::pow(time_of(exchange, *found) / exchange.seconds - 1, 2);
    }
    if (deviation < least * (1 - 1e-9)) {
      least = deviation;
      best = *found;
    }
  }
  return best;
}

}  // namespace

Link parse_link(std::string_view text) {
  constexpr std::string_view kTimeNames = "s, ms, us or ns";
  Link link;
  std::vector<std::string> given;
  for (const std::string& part : split(text, ',')) {
    const std::size_t equals = part.find('=');
    const std::string key{trimmed(std::string_view(part).substr(0, equals))};
    CONCORD_CHECK(equals != std::string::npos, ArgumentError,
                  "link '{}': '{}' is not of the form NAME=VALUE, as in latency=20us,bandwidth=50GB/s", printable(text),
                  printable(part));
    const std::string_view value = trimmed(std::string_view(part).substr(equals + 1));
    CONCORD_CHECK(std::ranges::find(given, key) == given.end(), ArgumentError, "link '{}': {} is given twice",
                  printable(text), printable(key));
    given.push_back(key);
    if (key == "bandwidth") {
      const double bandwidth = quantity(text, key, value, kBandwidths, "GB/s, MB/s, Gbit/s or Mbit/s");
      CONCORD_CHECK(bandwidth > 0, ArgumentError, "link '{}': the bandwidth must be above 0", printable(text));
      link.per_byte = 1 / bandwidth;
    } else {
      CONCORD_CHECK(key == "latency" || key == "overhead" || key == "gap", ArgumentError,
                    "link '{}': '{}' is unknown; it may have latency, bandwidth, overhead and gap", printable(text),
                    printable(key));
      double& time = key == "latency" ? link.latency : key == "overhead" ? link.overhead : link.gap;
      time = quantity(text, key, value, kTimes, kTimeNames);
    }
  }
  for (const char* needed : {"latency", "bandwidth"}) {
    CONCORD_CHECK(std::ranges::find(given, needed) != given.end(), ArgumentError, "link '{}': {} is missing",
                  printable(text), needed);
  }
  return link;
}

std::vector<MeasuredExchange> read_exchanges(std::string_view text, std::string_view subject) {
  std::vector<MeasuredExchange> exchanges;
  bool has_header = false;
  std::size_t number = 0;
  for (const std::string& line : split(text, '\n')) {
    ++number;
    const std::string_view row = trimmed(line);
    if (row.empty() || row.starts_with('#')) continue;
    if (!has_header) {
      CONCORD_CHECK(row.starts_with("bytes,ranks,seconds"), FormatError,
                    "{}: line {} must be the header bytes,ranks,seconds of measured exchanges", subject, number);
      has_header = true;
      continue;
    }
    const std::vector<std::string> cells = split(row, ',');
    const auto cell = [&](std::size_t i) {
      return i < cells.size() ? number_in_text<double>(trimmed(cells[i])) : std::nullopt;
    };
    const std::optional<double> bytes = cell(0), ranks = cell(1), seconds = cell(2);
    constexpr double kMostRanks = 1e6;
    CONCORD_CHECK(bytes && ranks && seconds && *bytes > 0 && *ranks >= 2 && *ranks <= kMostRanks && *seconds > 0 &&
                      std::isfinite(*bytes) && std::isfinite(*seconds),
                  FormatError, "{}: line {} is '{}'; it must be bytes above 0, ranks from 2 on, and seconds above 0",
                  subject, number, printable(row));
    exchanges.push_back({*bytes, static_cast<int>(*ranks), *seconds});
  }
  CONCORD_CHECK(!exchanges.empty(), FormatError, "{}: it has no exchange", subject);
  return exchanges;
}

FittedLink fit_link(std::span<const MeasuredExchange> exchanges) {
  const auto differ = [&](auto field) {
    return std::ranges::any_of(exchanges, [&](const auto& one) { return one.*field != exchanges[0].*field; });
  };
  CONCORD_CHECK(differ(&MeasuredExchange::bytes), ArgumentError,
                "a link cannot be fitted to exchanges of one size; measure at least two sizes");
  constexpr unsigned kLatencyAndBytes = 0b0101, kAll = 0b1111;
  const Unknowns found = least_squares(exchanges, differ(&MeasuredExchange::ranks) ? kAll : kLatencyAndBytes);
  FittedLink fitted{{found[0], 0, found[1], found[2]}, found[3], 0};
  for (const MeasuredExchange& exchange : exchanges) {
    fitted.error = std::max(fitted.error, std::abs(time_of(exchange, found) / exchange.seconds - 1));
  }
  return fitted;
}

}  // namespace concord::plan
