// attention_tolerance(): what rounding each factor of each product does takes at most a third of it, on numbers of many
// kinds, and what is missing is not within it.
#include "concord/compare/tolerance/attention.hpp"

#include <bit>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>

#include "concord/ops/attention.hpp"
#include "concord_test.hpp"

namespace concord::test {
namespace {

constexpr std::size_t kWidth = 32;

/// Rows of kWidth numbers.
using Rows = std::vector<float>;

Rows normal(std::size_t rows, float deviation, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> numbers(0, deviation);
  Rows result(rows * kWidth);
  for (float& x : result) x = numbers(random);
  return result;
}

/// With as many bits as a factor in bf16 or tf32 has.
double rounded(double x, Precision precision) {
  const std::uint32_t lost = precision == Precision::bf16 ? 16 : 13;
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(x)) + (1U << (lost - 1));
  return std::bit_cast<float>(bits >> lost << lost);
}

Tensor tensor_of(const Rows& values) {
  return Tensor::of<float>(Shape{1, 1, static_cast<std::int64_t>(values.size() / kWidth), kWidth}, values);
}

/// One head: queries, keys, values, and the gradient of the result.
struct Problem {
  const char* name;
  Rows q, k, v, diff;
};

std::vector<Problem> problems() {
  constexpr std::size_t kQueries = 33, kKeys = 47;
  const auto made = [&](const char* name, float of_query = 1, float of_diff = 1) {
    return Problem{name, normal(kQueries, of_query, 1), normal(kKeys, 1, 2), normal(kKeys, 1, 3),
                   normal(kQueries, of_diff, 4)};
  };
  std::vector<Problem> all{made("normal"), made("flat", 0.02F), made("peaked", 4), made("small gradients", 1, 1e-5F)};
  Problem outliers = made("outliers"), one_key = made("all look at one key"), sum = made("gradients add up to nothing"),
          same = made("nearly the same values");
  for (std::size_t i = 0; i < kWidth; ++i) {
    outliers.q[i] *= 30;
    outliers.k[i] *= 10;
    outliers.v[i] *= 10;
    for (std::size_t row = 0; row < kQueries; ++row)
      one_key.q[row * kWidth + i] = 1 + 0.1F * one_key.q[row * kWidth + i];
    one_key.k[i] = 3;
    float mean = 0;
    for (std::size_t row = 0; row < kQueries; ++row) mean += sum.diff[row * kWidth + i] / kQueries;
    for (std::size_t row = 0; row < kQueries; ++row) sum.diff[row * kWidth + i] -= mean;
    for (std::size_t row = 0; row < kKeys; ++row) same.v[row * kWidth + i] = 1 + 1e-3F * same.v[row * kWidth + i];
  }
  for (Problem& one : std::vector{outliers, one_key, sum, same}) all.push_back(one);
  return all;
}

struct Results {
  std::vector<double> result, logarithms, diff_q, diff_k, diff_v;
};

using Rounding = std::function<double(double)>;

double product(const Rows& a, std::size_t i, const Rows& b, std::size_t j, const Rounding& factor) {
  double sum = 0;
  for (std::size_t c = 0; c < kWidth; ++c) sum += factor(a[i * kWidth + c]) * factor(b[j * kWidth + c]);
  return sum;
}

/// dst[i] += a · b[j].
void add(std::vector<double>& dst, std::size_t i, double a, const Rows& b, std::size_t j, const Rounding& factor) {
  for (std::size_t c = 0; c < kWidth; ++c) dst[i * kWidth + c] += factor(a) * factor(b[j * kWidth + c]);
}

/// Each pass is given the right results of the one before, if there is one, as operators are when they are compared.
Results computed(const Problem& p, double scale, const Rounding& factor, const Results* right = nullptr) {
  const std::size_t queries = p.q.size() / kWidth, keys = p.k.size() / kWidth;
  Results r{std::vector<double>(p.q.size()), std::vector<double>(queries), std::vector<double>(p.q.size()),
            std::vector<double>(p.k.size()), std::vector<double>(p.k.size())};
  for (std::size_t i = 0; i < queries; ++i) {
    std::vector<double> scores(keys);
    for (std::size_t j = 0; j < keys; ++j) scores[j] = scale * product(p.q, i, p.k, j, factor);
    double total = 0;
    for (const double score : scores) total += std::exp(score);
    r.logarithms[i] = std::log(total);
    for (std::size_t j = 0; j < keys; ++j) add(r.result, i, std::exp(scores[j] - r.logarithms[i]), p.v, j, factor);

    const Results& given = right ? *right : r;
    const auto row = [&](const std::vector<double>& of) {
      return of.begin() + static_cast<std::ptrdiff_t>(i * kWidth);
    };
    const double delta = std::inner_product(row(given.result), row(given.result) + kWidth,
                                            p.diff.begin() + static_cast<std::ptrdiff_t>(i * kWidth), 0.0);
    for (std::size_t j = 0; j < keys; ++j) {
      const double weight = std::exp(scores[j] - given.logarithms[i]);
      const double slope = weight * (product(p.diff, i, p.v, j, factor) - delta);
      add(r.diff_q, i, scale * slope, p.k, j, factor);
      add(r.diff_k, j, scale * slope, p.q, i, factor);
      add(r.diff_v, j, weight, p.diff, i, factor);
    }
  }
  return r;
}

Tensor as_tensor(const std::vector<double>& values, bool has_width = true) {
  const auto rows = static_cast<std::int64_t>(has_width ? values.size() / kWidth : values.size());
  return Tensor::of<float>(has_width ? Shape{1, 1, rows, kWidth} : Shape{1, 1, rows},
                           std::vector<float>(values.begin(), values.end()));
}

}  // namespace

TEST_CASE("attention may be off by what rounding its factors does", "[compare]") {
  const ops::AttentionForm form{.scale = 1 / std::sqrt(static_cast<float>(kWidth))};
  const double scale = form.scale;
  for (const Problem& p : problems()) {
    const Results right = computed(p, scale, [](double x) { return x; });
    const std::vector<Tensor> forward{tensor_of(p.q), tensor_of(p.k), tensor_of(p.v)};
    std::vector<Tensor> backward = forward;
    const Tensor logarithms = as_tensor(right.logarithms, false);
    backward.insert(backward.end(), {tensor_of(p.diff), logarithms, logarithms});
    for (const Precision precision : {Precision::bf16, Precision::tf32}) {
      const Results off = computed(
          p, scale, [&](double x) { return rounded(x, precision); }, &right);
      const auto check = [&](const char* what, const Operator& op, const std::vector<Tensor>& inputs,
                             const std::vector<Tensor>& results, std::size_t k, const std::vector<double>& found) {
        CAPTURE(p.name, name_of(precision), what);
        const ReplayedNode node{{}, &op, {}, inputs, {}, results};
        Magnitudes magnitudes;
        const double allowed = attention_tolerance(node, results, k, unit_of(precision), magnitudes);
        double error = 0;
        for (std::size_t i = 0; i < found.size(); ++i) {
          error = std::max(error, std::abs(found[i] - static_cast<double>(results[k].values<float>()[i])));
        }
        CHECK(error < allowed / 3);
        const std::string name = p.name;
        if (name != "normal" && name != "small gradients") return;
        CHECK(magnitude_of(results[k]).largest > 1.5 * allowed);  // what is missing
      };
      const ops::Attention attention(form);
      const std::vector<Tensor> made{as_tensor(right.result), logarithms};
      check("result", attention, forward, made, 0, off.result);
      check("logarithms", attention, forward, made, 1, off.logarithms);
      check("diff_q", ops::AttentionBackwardQuery(form), backward, {as_tensor(right.diff_q)}, 0, off.diff_q);
      const ops::AttentionBackwardKeyValue of_pair(form);
      const std::vector<Tensor> pair{as_tensor(right.diff_k), as_tensor(right.diff_v)};
      check("diff_k", of_pair, backward, pair, 0, off.diff_k);
      check("diff_v", of_pair, backward, pair, 1, off.diff_v);
    }
  }
}

TEST_CASE("other operators have no tolerance of attention", "[compare]") {
  Graph graph;
  const Value y = relu(graph.input("x", {DType::f32, {3}}));
  const ReplayedNode node{{}, y.node().op.get(), {}, {Tensor(DType::f32, {3})}, {}, {Tensor(DType::f32, {3})}};
  Magnitudes magnitudes;
  CHECK(attention_tolerance(node, node.results, 0, 0x1p-8, magnitudes) == 0);
}

}  // namespace concord::test
