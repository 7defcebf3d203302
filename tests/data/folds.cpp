// Folds and stratified splits: every row once, sizes and class shares even, the same for the same seed.
#include "concord/data/folds.hpp"

#include <algorithm>
#include <numeric>

#include "core/thrown.hpp"

using namespace concord;
using namespace concord::test;

namespace {

using FoldRows = std::vector<std::vector<std::int32_t>>;

/// 0 … n-1 if each row is in one fold.
std::vector<std::int32_t> all_rows_of(const FoldRows& folds) {
  std::vector<std::int32_t> rows;
  for (const auto& fold : folds) {
    CHECK(std::ranges::is_sorted(fold));
    rows.insert(rows.end(), fold.begin(), fold.end());
  }
  std::ranges::sort(rows);
  return rows;
}

std::vector<std::int32_t> first_rows(std::int32_t n) {
  std::vector<std::int32_t> rows(static_cast<std::size_t>(n));
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

/// 0 for 70 rows, 1 for 23, 2 for 7 and -1 for 3, mixed.
std::vector<std::int32_t> uneven_labels() {
  std::vector<std::int32_t> labels;
  for (const auto& [label, count] : {std::pair{0, 70}, {1, 23}, {2, 7}, {-1, 3}}) {
    labels.insert(labels.end(), static_cast<std::size_t>(count), label);
  }
  for (std::size_t i = 0; i < labels.size(); ++i) std::swap(labels[i], labels[i * 37 % labels.size()]);
  return labels;
}

std::int64_t count_of(std::span<const std::int32_t> labels, const std::vector<std::int32_t>& rows, std::int32_t label) {
  return std::ranges::count_if(rows, [&](std::int32_t row) { return labels[static_cast<std::size_t>(row)] == label; });
}

}  // namespace

TEST_CASE("each row is in one fold, sizes differ by at most one, and the seed decides", "[data]") {
  for (const auto& [n, k] : {std::pair{10, 3}, {7, 7}, {100, 2}, {1001, 10}}) {
    const FoldRows rows = data::folds(n, k, 5);
    CHECK(rows.size() == static_cast<std::size_t>(k));
    CHECK(all_rows_of(rows) == first_rows(n));
    const auto [least, most] = std::ranges::minmax(rows, {}, &std::vector<std::int32_t>::size);
    CHECK(most.size() - least.size() <= 1);
    CHECK(rows == data::folds(n, k, 5));
  }
  CHECK(data::folds(100, 2, 5) != data::folds(100, 2, 6));
  CHECK(data::folds(8, 3, 1) == FoldRows{{2, 3, 4}, {0, 1, 6}, {5, 7}});  // on every machine
  for (const auto& [n, k] : {std::pair{10, 1}, {10, 11}, {0, 2}, {10, -1}}) {
    CHECK_THAT(thrown([&, n = n, k = k] { static_cast<void>(data::folds(n, k)); }), contains("ArgumentError: folds"));
  }
}

TEST_CASE("stratified folds keep the shares of the classes", "[data]") {
  const std::vector<std::int32_t> labels = uneven_labels();
  for (const int k : {2, 3, 5, 10}) {
    const FoldRows rows = data::folds(labels, k, 1);
    CHECK(all_rows_of(rows) == first_rows(103));
    for (const std::int32_t label : {-1, 0, 1, 2}) {
      std::vector<std::int64_t> counts;
      for (const auto& fold : rows) counts.push_back(count_of(labels, fold, label));
      CHECK(std::ranges::max(counts) - std::ranges::min(counts) <= 1);
    }
    const auto [least, most] = std::ranges::minmax(rows, {}, &std::vector<std::int32_t>::size);
    CHECK(most.size() - least.size() <= 1);
  }
  CHECK(data::folds(labels, 5, 1) != data::folds(labels, 5, 2));
}

TEST_CASE("a stratified split draws each class in its share", "[data]") {
  const std::vector<std::int32_t> labels = uneven_labels();
  for (const std::int64_t count : {1, 2, 20, 51, 102}) {
    const auto [rest, drawn] = data::stratified_rows(labels, count, 3);
    CHECK(drawn.size() == static_cast<std::size_t>(count));
    CHECK(all_rows_of({rest, drawn}) == first_rows(103));
    for (const auto& [label, size] : {std::pair{0, 70}, {1, 23}, {2, 7}, {-1, 3}}) {
      const double share = static_cast<double>(count * size) / 103;
      CHECK(std::abs(static_cast<double>(count_of(labels, drawn, label)) - share) < 1);
    }
  }
  CHECK_THAT(thrown([&] { static_cast<void>(data::stratified_rows(labels, 103)); }), contains("got 103 of 103"));

  const Dataset dataset = data::synthetic(Shape{2}, 4, 40);
  const auto [rest, part] = data::stratified_split(dataset, 8, 1);
  CHECK(rest.size() == 32);
  CHECK(data::class_counts(part) == std::vector<std::int64_t>{2, 2, 2, 2});
  Dataset targets = dataset;
  targets.labels = Tensor(DType::f32, Shape{40, 1});
  targets.classes = 0;
  CHECK_THAT(thrown([&] { static_cast<void>(data::stratified_split(targets, 8)); }), contains("f32 [40, 1]"));
  CHECK_THAT(thrown([&] { static_cast<void>(data::class_counts(targets)); }), contains("no classes"));
}

TEST_CASE("balanced weights are those of scikit-learn", "[data]") {
  const std::vector<std::int32_t> labels{0, 0, 0, 0, 1, 1, 3, -1, 4};
  const std::vector<std::int64_t> counts = data::class_counts(labels, 4);
  CHECK(counts == std::vector<std::int64_t>{4, 2, 0, 1});
  const std::vector<float> weights =
      data::balanced_weights(counts);  // compute_class_weight("balanced"): n / (k · count)
  CHECK(weights == std::vector<float>{7.0F / 12, 7.0F / 6, 0, 7.0F / 3});
  CHECK_THAT(thrown([] {
               static_cast<void>(data::balanced_weights(std::vector<std::int64_t>{0, 0}));
             }),
             contains("no labels in 2 classes"));
}
