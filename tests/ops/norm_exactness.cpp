// Normalisations of numbers of every size against float64: rows far from 0, constant ones, one large value among small
// ones, deviations whose squares leave fp32. Bounds are a few roundings, which is what PyTorch 2.15 reaches on rows
// around 0 and misses by far on others (tests/goldens/norm_errors.py measures it; its figures stand at the bounds).
#include <fmt/format.h>

#include <cmath>
#include <random>

#include "concord/ops/normalise.hpp"
#include "concord/ops/row_norm.hpp"
#include "ops/op_test.hpp"
#include "setting.hpp"

namespace concord::test {
namespace {

/// Numbers of one row.
struct Row {
  double mean, deviation;
  double first = 0;  // takes the place of the first number unless 0
};

std::vector<Row> grid() {
  std::vector<Row> rows;
  for (const double mean : {0.0, 1e-30, 1.0, 100.0, 777.7, 10000.1, -3e5, 1e18}) {
    for (const double deviation : {0.0, 1e-30, 1e-18, 0.1, 1.0, 1e18}) rows.push_back({mean, deviation});
  }
  for (const Row& row : {Row{0, 1, 1e4}, Row{100, 0.1, 1e6}, Row{0, 1e-3, 1e18}, Row{0, 1e30}, Row{1e30, 1e29},
                         Row{1e38, 1e37}, Row{5, 0.01, -1e7}, Row{0, 1e-10}, Row{0, 1e-14}, Row{1, 1e-3}}) {
    rows.push_back(row);
  }
  return rows;
}

/// (rows, length)
std::vector<std::vector<double>> numbers(const std::vector<Row>& rows, std::size_t length, std::uint32_t seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal;
  std::vector<std::vector<double>> all;
  for (const Row& row : rows) {
    auto& values = all.emplace_back(length);
    for (double& value : values) value = static_cast<float>(row.mean + row.deviation * normal(generator));
    if (row.first != 0) values[0] = static_cast<float>(row.first);
  }
  return all;
}

struct Normalised {
  std::vector<double> dst, diff_src;
  double mean = 0, variance = 0, rstd = 0;
  double diff_away = 0;  // the farthest that diff_dst is from what is subtracted from it
};

Normalised reference(const std::vector<double>& src, const std::vector<double>& diff, bool centred, float epsilon) {
  const auto n = static_cast<double>(src.size());
  // Around the first number, so that what is common to all is exact.
  const auto mean_around = [n](const std::vector<double>& values, double near) {
    double sum = 0;
    for (const double value : values) sum += value - near;
    return sum / n;
  };
  Normalised result{src, src};
  const double near = centred ? src[0] : 0, rest = centred ? mean_around(src, near) : 0;
  const double diff_near = centred ? diff[0] : 0, diff_rest = centred ? mean_around(diff, diff_near) : 0;
  const auto deviation = [&](double x) { return (x - near) - rest; };
  result.mean = near + rest;
  for (const double x : src) result.variance += deviation(x) * deviation(x) / n;
  result.rstd = 1 / std::sqrt(result.variance + static_cast<double>(epsilon));
  double product = 0;
  for (std::size_t i = 0; i < src.size(); ++i) {
    result.dst[i] = deviation(src[i]) * result.rstd;
    product += ((diff[i] - diff_near) - diff_rest) * result.dst[i] / n;
  }
  for (std::size_t i = 0; i < src.size(); ++i) {
    const double away = (diff[i] - diff_near) - diff_rest;
    result.diff_away = std::max(result.diff_away, std::abs(away));
    result.diff_src[i] = result.rstd * (away - result.dst[i] * product);
  }
  return result;
}

/// The largest difference in parts of `scale`.
double error(const std::vector<double>& got, const std::vector<double>& expected, double scale) {
  double worst = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double difference = std::abs(got[i] - expected[i]);
    worst = difference <= worst ? worst : difference;  // NaN stays
  }
  return worst == 0 ? 0 : worst / scale;
}

double largest(const std::vector<double>& values) {
  double most = 0;
  for (const double value : values) most = std::max(most, std::abs(value));
  return most;
}

enum class Kind : std::uint8_t { layer, squares, channels, planes };

/// How the rows lie in a tensor: (rows, length), or channels of (1, rows, length), (length, rows) or (images, rows,
/// rest).
Shape shape_of(Kind kind, std::int64_t rows, std::int64_t length, std::int64_t images) {
  if (kind == Kind::channels) return {length, rows};
  if (kind == Kind::planes) return {images, rows, length / images};
  return {rows, length};
}

std::size_t place(Kind kind, std::size_t rows, std::size_t length, std::size_t images, std::size_t row, std::size_t i) {
  if (kind == Kind::channels) return i * rows + row;
  if (kind == Kind::planes) return (i / (length / images) * rows + row) * (length / images) + i % (length / images);
  return row * length + i;
}

/// What one device gives for all rows, and how far it may be from float64. A row of these two is of no use to anyone
/// who divides by a variance of 0 with an epsilon of 0.
void check_rows(Kind kind, std::size_t length, float epsilon, std::size_t images = 1) {
  std::vector<Row> rows = grid();
  if (epsilon == 0)
    std::erase_if(rows, [](const Row& row) { return row.deviation == 0 || row.mean != 0 || row.deviation < 1e-30; });
  const auto src = numbers(rows, length, 1);
  std::vector<Row> diff_rows(rows.size(), Row{1, 1});
  for (std::size_t r = 0; r < rows.size(); r += 3) diff_rows[r] = {1000.1, 0.01};
  const auto diff = numbers(diff_rows, length, 2);
  const auto shape = shape_of(kind, static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(length),
                              static_cast<std::int64_t>(images));
  Array x(shape), d(shape);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (std::size_t i = 0; i < length; ++i) {
      const std::size_t at = place(kind, rows.size(), length, images, r, i);
      x.values[at] = src[r][i];
      d.values[at] = diff[r][i];
    }
  }
  const bool by_channel = kind == Kind::channels || kind == Kind::planes, centred = kind != Kind::squares;
  const auto build = [&](const std::vector<Value>& in) -> std::vector<Value> {
    Graph& graph = in[0].graph();
    Value dst, mean, spread;
    if (by_channel) {
      const Shape channels{static_cast<std::int64_t>(rows.size())};
      const BatchNormResult result = batch_norm(in[0], full(graph, channels, 1), full(graph, channels, 0), epsilon);
      std::tie(dst, mean, spread) = std::tie(result.dst, result.mean, result.variance);
    } else {
      const RowNormResult result = centred ? row_norm(in[0], 1, epsilon) : row_norm_rms(in[0], 1, epsilon);
      std::tie(dst, mean, spread) = std::tie(result.dst, result.mean, result.rstd);
    }
    return {dst, gradient(sum(dst * in[1]), std::vector{in[0]})[0], spread, centred ? mean : spread};
  };
  for (const DevicePtr& device : devices()) {
    const std::vector<Tensor> results = run(device, {{x}, {d}}, build);
    const Array dst = to_array(results[0]), diff_src = to_array(results[1]);
    const Array spread = to_array(results[2]), mean = to_array(results[3]);
    for (std::size_t r = 0; r < rows.size(); ++r) {
      const Normalised expected = reference(src[r], diff[r], centred, epsilon);
      std::vector<double> got(length), got_diff(length);
      for (std::size_t i = 0; i < length; ++i) {
        got[i] = dst.values[place(kind, rows.size(), length, images, r, i)];
        got_diff[i] = diff_src.values[place(kind, rows.size(), length, images, r, i)];
      }
      INFO(device->info().id << ", " << length << " numbers of mean " << rows[r].mean << ", deviation "
                             << rows[r].deviation
                             << (rows[r].first != 0 ? fmt::format(", first {}", rows[r].first) : "") << ", epsilon "
                             << epsilon << ", kind " << static_cast<int>(kind));
      const double size = largest(expected.dst);
      const double of_dst = error(got, expected.dst, size > 0 ? size : 1);
      CHECK(of_dst <= 6e-7);
      const double scale = expected.rstd * expected.diff_away * std::max(1.0, size);
      if (scale > 1e-31 && scale < 1e37) CHECK(error(got_diff, expected.diff_src, scale) <= 2e-6);
      if (centred && std::abs(expected.mean) > 1e-37) {
        const double deviation = std::sqrt(expected.variance);
        CHECK(std::abs(mean.values[r] - expected.mean) <= 1e-7 * std::abs(expected.mean) + 1e-6 * deviation);
      }
      const double wanted = by_channel ? expected.variance : expected.rstd;
      if (wanted > 1e-37 && wanted < 1e38) CHECK(std::abs(spread.values[r] / wanted - 1) <= 2e-6);
    }
  }
}

TEST_CASE("norms keep the digits and the range of fp32", "[ops][row_norm][normalise][exactness]") {
  for (const float epsilon : {1e-5F, 0.0F}) {
    for (const std::size_t length : {2U, 3U, 7U, 64U, 768U, 1000U, 4096U, 65536U}) {
      for (const Kind kind : {Kind::layer, Kind::squares, Kind::channels, Kind::planes}) {
        check_rows(kind, length, epsilon);
      }
      if (length % 8 == 0) check_rows(Kind::planes, length, epsilon, 8);
    }
  }
}

TEST_CASE("norms for GPUs keep the digits and the range of fp32", "[ops][row_norm][normalise][exactness]") {
  const DebugOption kernels("kernels", "gpu");
  for (const std::size_t length : {7U, 768U, 65536U}) {
    for (const float epsilon : {1e-5F, 0.0F}) {
      for (const Kind kind : {Kind::layer, Kind::squares}) check_rows(kind, length, epsilon);
      for (const char* way : {"groups", "whole"}) {
        const DebugOption forced("batch_norm", way);
        for (const Kind kind : {Kind::channels, Kind::planes}) check_rows(kind, length, epsilon);
        if (length % 8 == 0) check_rows(Kind::planes, length, epsilon, 8);
      }
    }
  }
}

}  // namespace
}  // namespace concord::test
