// The sparse matrices of axis maps.
#include "concord/ops/axis_map.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "concord/core/check.hpp"

namespace concord::ops {
namespace {

/// Adds one row after the other.
class Rows {
 public:
  void add(std::int64_t place, double weight) {
    taps_.place.push_back(static_cast<std::int32_t>(place));
    taps_.weight.push_back(static_cast<float>(weight));
  }
  void end_row() { taps_.begin.push_back(static_cast<std::int32_t>(taps_.place.size())); }
  [[nodiscard]] Taps taps() && { return std::move(taps_); }

 private:
  Taps taps_{{0}, {}, {}};
};

double coordinate_of(const AxisMap& map, std::int64_t j) {
  const auto at = static_cast<double>(j);
  return map.align_corners ? map.step * at : map.step * (at + 0.5) - 0.5;
}

void add_linear(const AxisMap& map, std::int64_t j, Rows& rows) {
  const double at = std::max(coordinate_of(map, j), 0.0);
  const std::int64_t first = std::min(static_cast<std::int64_t>(at), map.src - 1);
  const double part = std::clamp(at - static_cast<double>(first), 0.0, 1.0);
  rows.add(first, 1 - part);
  rows.add(std::min(first + 1, map.src - 1), part);
}

/// Keys's kernel at distance d.
double cubic_weight(double d) {
  constexpr double a = -0.75;
  d = std::abs(d);
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? a * (((d - 5) * d + 8) * d - 4) : 0;
}

void add_cubic(const AxisMap& map, std::int64_t j, Rows& rows) {
  const double at = coordinate_of(map, j);
  const auto first = static_cast<std::int64_t>(std::floor(at)) - 1;
  for (std::int64_t k = first; k < first + 4; ++k) {
    rows.add(std::clamp<std::int64_t>(k, 0, map.src - 1), cubic_weight(at - static_cast<double>(k)));
  }
}

void add_gaussian(const AxisMap& map, std::int64_t j, Rows& rows) {
  const std::int64_t first = std::max<std::int64_t>(j - map.count / 2, 0);
  const std::int64_t last = std::min(j + map.count / 2, map.src - 1);
  const auto weight = [&](std::int64_t k) {
    const double distance = static_cast<double>(k - j) / map.step;
    return std::exp(-0.5 * distance * distance);
  };
  double total = 0;
  for (std::int64_t k = first; k <= last; ++k) total += weight(k);
  for (std::int64_t k = first; k <= last; ++k) rows.add(k, weight(k) / total);
}

std::int64_t reflected(std::int64_t place, std::int64_t size) {
  const std::int64_t inside = std::abs(place);
  return inside < size ? inside : 2 * (size - 1) - inside;
}

void add_row(const AxisMap& map, std::int64_t j, Rows& rows) {
  using Kind = AxisMap::Kind;
  switch (map.kind) {
    case Kind::nearest: {
      const float place = std::floor(static_cast<float>(j) * static_cast<float>(map.step));
      return rows.add(std::min(static_cast<std::int64_t>(place), map.src - 1), 1);
    }
    case Kind::nearest_exact: {
      const float place = std::floor((static_cast<float>(j) + 0.5F) * static_cast<float>(map.step));
      return rows.add(std::min(static_cast<std::int64_t>(place), map.src - 1), 1);
    }
    case Kind::linear: return add_linear(map, j, rows);
    case Kind::cubic: return add_cubic(map, j, rows);
    case Kind::reflect: return rows.add(reflected(j - map.count, map.src), 1);
    case Kind::replicate: return rows.add(std::clamp<std::int64_t>(j - map.count, 0, map.src - 1), 1);
    case Kind::circular: return rows.add(((j - map.count) % map.src + map.src) % map.src, 1);
    case Kind::repeat: return rows.add(j / map.count, 1);
    case Kind::flip: return rows.add(map.src - 1 - j, 1);
    case Kind::gaussian: return add_gaussian(map, j, rows);
    case Kind::taps: break;  // taps_of copies the whole table
  }
  throw Error("unknown kind of axis map");
}

/// By counting: rows of the result keep the order of the rows they come from. Weights of 0 are left out.
Taps transposed(const Taps& taps, std::int64_t rows) {
  Taps result;
  result.begin.assign(static_cast<std::size_t>(rows) + 1, 0);
  for (std::size_t t = 0; t < taps.place.size(); ++t) {
    if (taps.weight[t] != 0) ++result.begin[static_cast<std::size_t>(taps.place[t]) + 1];
  }
  for (std::size_t i = 1; i < result.begin.size(); ++i) result.begin[i] += result.begin[i - 1];
  result.place.resize(static_cast<std::size_t>(result.begin.back()));
  result.weight.resize(result.place.size());
  std::vector<std::int32_t> next(result.begin.begin(), result.begin.end() - 1);
  for (std::size_t row = 0; row + 1 < taps.begin.size(); ++row) {
    for (auto t = static_cast<std::size_t>(taps.begin[row]); t < static_cast<std::size_t>(taps.begin[row + 1]); ++t) {
      if (taps.weight[t] == 0) continue;
      const auto to = static_cast<std::size_t>(next[static_cast<std::size_t>(taps.place[t])]++);
      result.place[to] = static_cast<std::int32_t>(row);
      result.weight[to] = taps.weight[t];
    }
  }
  return result;
}

constexpr std::string_view kNames[] = {"nearest", "linear", "cubic",    "reflect", "replicate",    "circular",
                                       "repeat",  "flip",   "gaussian", "taps",    "nearest_exact"};

}  // namespace

AxisMap AxisMap::of_taps(std::int64_t src, std::int64_t dst, Taps taps) {
  const bool has_rows = src >= 0 && dst >= 0 && taps.begin.size() == static_cast<std::size_t>(dst) + 1 &&
                        taps.begin.front() == 0 && std::ranges::is_sorted(taps.begin);
  CONCORD_CHECK(has_rows && static_cast<std::size_t>(taps.begin.back()) == taps.place.size() &&
                    taps.weight.size() == taps.place.size(),
                ArgumentError,
                "axis map: {} row starts, {} places and {} weights are no table of {} rows; `begin` ascends from 0 to "
                "the number of taps",
                taps.begin.size(), taps.place.size(), taps.weight.size(), dst);
  for (const std::int32_t place : taps.place) {
    CONCORD_CHECK(place >= 0 && place < src, ArgumentError, "axis map: place {} is outside a source of {} positions",
                  place, src);
  }
  return {.kind = Kind::taps, .src = src, .dst = dst, .table = std::make_shared<const Taps>(std::move(taps))};
}

AxisMap AxisMap::transpose() const {
  AxisMap map = *this;
  map.transposed = !transposed;
  return map;
}

std::string AxisMap::str() const {
  if (kind == Kind::taps) {
    return fmt::format("taps {} to {} begin {} place {} weight {}{}", src, dst, fmt::join(table->begin, " "),
                       fmt::join(table->place, " "), fmt::join(table->weight, " "), transposed ? " transposed" : "");
  }
  return fmt::format("{} {} to {} count {} step {}{}{}", kNames[static_cast<std::size_t>(kind)], src, dst, count, step,
                     align_corners ? " align_corners" : "", transposed ? " transposed" : "");
}

Taps taps_of(const AxisMap& map) {
  if (map.kind == AxisMap::Kind::taps) return map.transposed ? transposed(*map.table, map.src) : *map.table;
  Rows rows;
  for (std::int64_t j = 0; j < map.dst; ++j) {
    add_row(map, j, rows);
    rows.end_row();
  }
  Taps taps = std::move(rows).taps();
  return map.transposed ? transposed(taps, map.src) : taps;
}

}  // namespace concord::ops
