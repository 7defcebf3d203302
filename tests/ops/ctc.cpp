// CTC against the sum over all paths, and over the usual recursion for longer inputs.
#include "concord/ops/ctc.hpp"

#include <fmt/format.h>

#include <cmath>

#include "concord/nn/ctc_loss.hpp"
#include "ops/ctc_reference.hpp"
#include "ops/op_test.hpp"

namespace concord::test {
namespace {

/// The first `length` labels of sample n.
Labels labels_of(const Array& targets, std::int64_t n, std::int64_t length) {
  Labels labels;
  for (std::int64_t i = 0; i < length; ++i) labels.push_back(static_cast<std::int64_t>(targets.at({n, i})));
  return labels;
}

/// What a path says: repetitions once, then no blanks.
Labels said_by(const Labels& path, std::int64_t blank) {
  Labels said;
  for (std::size_t t = 0; t < path.size(); ++t) {
    if (path[t] != blank && (t == 0 || path[t] != path[t - 1])) said.push_back(path[t]);
  }
  return said;
}

double by_all_paths(const Array& log_p, std::int64_t n, std::int64_t steps, const Labels& target, std::int64_t blank) {
  const std::int64_t classes = log_p.shape[2];
  Labels path(static_cast<std::size_t>(steps), 0);
  double total = 0;
  for (;;) {
    if (said_by(path, blank) == target) {
      double sum = 0;
      for (std::int64_t t = 0; t < steps; ++t) sum += log_p.at({t, n, path[static_cast<std::size_t>(t)]});
      total += std::exp(sum);
    }
    std::size_t digit = 0;
    while (digit < path.size() && ++path[digit] == classes) path[digit++] = 0;
    if (digit == path.size()) return -std::log(total);
  }
}

Case ctc_case(std::string name, const Array& log_p, const Array& targets, const Array& inputs, const Array& lengths,
              std::int32_t blank,
              double (*loss)(const Array&, std::int64_t, std::int64_t, const Labels&, std::int64_t)) {
  return {.name = std::move(name),
          .inputs = {{log_p}, {targets, DType::i32}, {inputs, DType::i32}, {lengths, DType::i32}},
          .build = [=](const std::vector<Value>& x) { return std::vector{ctc(x[0], x[1], x[2], x[3], blank)}; },
          .reference =
              [=](const std::vector<Array>& x) {
                Array losses(Shape{x[0].shape[1]});
                for (std::int64_t n = 0; n < x[0].shape[1]; ++n) {
                  const auto i = static_cast<std::size_t>(n);
                  const auto length = static_cast<std::int64_t>(x[3].values[i]);
                  losses.values[i] =
                      loss(x[0], n, static_cast<std::int64_t>(x[2].values[i]), labels_of(x[1], n, length), blank);
                }
                return std::vector{losses};
              },
          .tolerance = 2e-6};
}

TEST_CASE("ctc sums over all paths that give the target", "[ops][ctc]") {
  check(ctc_case("short", normal({5, 4, 3}, 1), Array({4, 2}, {1, 2, 1, 1, 2, 0, 0, 0}), Array({4}, {5, 4, 1, 5}),
                 Array({4}, {2, 2, 1, 0}), 0, by_all_paths));
  check(ctc_case("another blank", normal({4, 2, 3}, 2), Array({2, 2}, {0, 1, 0, 0}), Array({2}, {3, 4}),
                 Array({2}, {2, 2}), 2, by_all_paths));
}

TEST_CASE("ctc of longer inputs", "[ops][ctc]") {
  Array targets({2, 20});
  for (std::size_t i = 0; i < targets.values.size(); ++i) targets.values[i] = static_cast<double>(1 + i * i % 5);
  check(ctc_case("long", normal({50, 2, 6}, 3), targets, Array({2}, {50, 43}), Array({2}, {20, 13}), 0, by_recursion));
}

TEST_CASE("ctc of a batch of different lengths, with padding that means nothing", "[ops][ctc]") {
  constexpr std::int64_t kSamples = 6, kSteps = 17, kLongest = 8;
  const std::vector<double> steps{17, 9, 1, 13, 16, 5}, lengths{8, 3, 1, 0, 7, 2};
  Array targets({kSamples, kLongest}, std::vector<double>(kSamples * kLongest));
  for (std::size_t i = 0; i < targets.values.size(); ++i) {
    const bool used = static_cast<double>(i % kLongest) < lengths[i / kLongest];
    targets.values[i] = used ? static_cast<double>(1 + (i * 3 + i / kLongest) % 4) : (i % 2 == 0 ? -7.0 : 99.0);
  }
  const Array input_lengths({kSamples}, steps), target_lengths({kSamples}, lengths);
  const Array logits = normal({kSteps, kSamples, 5}, 11);
  check(ctc_case("ragged", logits, targets, input_lengths, target_lengths, 0, by_recursion));
  check({.name = "ragged mean of logits",
         .inputs = {{logits}, {targets, DType::i32}, {input_lengths, DType::i32}, {target_lengths, DType::i32}},
         .build = [](const std::vector<Value>& x) { return std::vector{loss::ctc(x[0], x[1], x[2], x[3])}; },
         .reference =
             [&](const std::vector<Array>& x) {
               Array mean{Shape{}};
               for (std::int64_t n = 0; n < kSamples; ++n) {
                 const auto i = static_cast<std::size_t>(n);
                 const Labels labels = labels_of(x[1], n, static_cast<std::int64_t>(lengths[i]));
                 mean.values[0] +=
                     by_recursion(log_softmaxed(x[0]), n, static_cast<std::int64_t>(steps[i]), labels, 0) /
                     std::max(lengths[i], 1.0) / kSamples;
               }
               return std::vector{mean};
             },
         .tolerance = 2e-6});
}

TEST_CASE("ctc of targets that cannot be, and of labels and lengths out of range", "[ops][ctc]") {
  const Input log_p{normal({3, 8, 4}, 4)};
  const Input targets{Array({8, 2}, {1, 1, 1, 2, 4, 1, 1, 0, -1, 1, 1, 2, 1, 2, 1, 2}), DType::i32};
  // A repetition needs 3 steps; two labels in two; class 4 of 4; the blank; class −1; lengths out of range.
  const Input inputs{Array({8}, {2, 2, 3, 3, 3, 4, -1, 3}), DType::i32};
  const Input lengths{Array({8}, {2, 2, 2, 2, 1, 1, 1, 3}), DType::i32};
  for (const DevicePtr& device : devices()) {
    for (const bool zero : {false, true}) {
      INFO("device " << device->info().id << ", zero_infinity " << zero);
      const auto results = run(device, {log_p, targets, inputs, lengths}, [&](const std::vector<Value>& x) {
        const Value loss = ctc(x[0], x[1], x[2], x[3], 0, zero);
        return std::vector{loss, Value(&loss.graph(), loss.node_id(), 1)};
      });
      const Array loss = to_array(results[0]), occupancy = to_array(results[1]);
      CHECK(loss.values[0] == (zero ? 0 : INFINITY));
      CHECK(std::isfinite(loss.values[1]));
      for (std::int64_t t = 0; t < 3; ++t) {
        const bool is_nan = !zero && t < 2;  // nothing comes after the input's end
        CHECK((is_nan ? std::isnan(occupancy.at({t, 0, 1})) : occupancy.at({t, 0, 1}) == 0));
        double sum = 0;
        for (std::int64_t c = 0; c < 4; ++c) sum += occupancy.at({t, 1, c});
        CHECK(sum == Approx(t < 2 ? 1 : 0));
      }
      for (std::size_t n = 2; n < 8; ++n) {
        CHECK(std::isnan(loss.values[n]));
        CHECK(std::isnan(occupancy.at({1, static_cast<std::int64_t>(n), 2})));
      }
    }
  }
}

TEST_CASE("ctc refuses what does not fit", "[ops][ctc]") {
  const auto error_of = [](const TensorSpec& log_p, const TensorSpec& targets, const TensorSpec& lengths) {
    return shape_error({log_p, targets, lengths},
                       [](const std::vector<Value>& x) { return std::vector{ctc(x[0], x[1], x[2], x[2])}; });
  };
  const TensorSpec log_p{DType::f32, {5, 2, 3}}, targets{DType::i32, {2, 4}}, lengths{DType::i32, {2}};
  CHECK_THAT(error_of({DType::f32, {5, 3}}, targets, lengths), contains("[5, 3]"));
  CHECK_THAT(error_of(log_p, {DType::i32, {3, 4}}, lengths), contains("[3, 4]") && contains("[2, S]"));
  CHECK_THAT(error_of(log_p, {DType::f32, {2, 4}}, lengths), contains("f32"));
  CHECK_THAT(error_of(log_p, targets, {DType::i32, {3}}), contains("input_lengths"));
  Graph graph;
  const Value x = graph.input("x", log_p), t = graph.input("t", targets), n = graph.input("n", lengths);
  CHECK_THROWS_AS(ctc(x, t, n, n, 3), ArgumentError);
}

}  // namespace
}  // namespace concord::test
