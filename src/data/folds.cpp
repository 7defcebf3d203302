// Folds: rows in random order, sorted by class where classes matter, are dealt out like cards.
#include "concord/data/folds.hpp"

#include <algorithm>
#include <numeric>

#include "concord/core/check.hpp"
#include "concord/core/philox.hpp"

namespace concord::data {
namespace {

constexpr std::int64_t kMostFoldRows = (std::int64_t{1} << 31) - 1;

/// 0 … n-1 in random order; other than that of the epochs with the same seed.
std::vector<std::int32_t> shuffled_rows(std::int64_t n, std::uint64_t seed) {
  std::vector<std::int32_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  PhiloxSequence words(Philox(seed, philox_purpose("data.folds")));
  for (auto i = static_cast<std::uint32_t>(n); i > 1; --i) std::swap(order[i - 1], order[words.below(i)]);
  return order;
}

/// Rows in random order within each class, classes in ascending order.
std::vector<std::int32_t> rows_by_class(std::span<const std::int32_t> labels, std::uint64_t seed) {
  std::vector<std::int32_t> order = shuffled_rows(static_cast<std::int64_t>(labels.size()), seed);
  std::ranges::stable_sort(order, {}, [&](std::int32_t row) { return labels[static_cast<std::size_t>(row)]; });
  return order;
}

void check_folds(std::int64_t n, int k) {
  CONCORD_CHECK(n <= kMostFoldRows, ArgumentError, "folds: {} samples; the limit is 2^31 - 1", n);
  CONCORD_CHECK(k >= 2 && k <= n, ArgumentError,
                "folds: the number of folds must be from 2 to the number of samples, got {} folds of {} samples", k, n);
}

std::vector<std::vector<std::int32_t>> deal(std::span<const std::int32_t> order, int k) {
  const auto count = static_cast<std::size_t>(k);
  std::vector<std::vector<std::int32_t>> folds(count);
  for (auto& fold : folds) fold.reserve(order.size() / count + 1);
  for (std::size_t i = 0; i < order.size(); ++i) folds[i % count].push_back(order[i]);
  for (auto& fold : folds) std::ranges::sort(fold);
  return folds;
}

}  // namespace

std::vector<std::vector<std::int32_t>> folds(std::int64_t n, int k, std::uint64_t seed) {
  check_folds(n, k);
  return deal(shuffled_rows(n, seed), k);
}

std::vector<std::vector<std::int32_t>> folds(std::span<const std::int32_t> labels, int k, std::uint64_t seed) {
  check_folds(static_cast<std::int64_t>(labels.size()), k);
  return deal(rows_by_class(labels, seed), k);
}

std::pair<std::vector<std::int32_t>, std::vector<std::int32_t>> stratified_rows(std::span<const std::int32_t> labels,
                                                                                std::int64_t count,
                                                                                std::uint64_t seed) {
  const auto n = static_cast<std::int64_t>(labels.size());
  CONCORD_CHECK(n <= kMostFoldRows, ArgumentError, "stratified split: {} samples; the limit is 2^31 - 1", n);
  CONCORD_CHECK(count > 0 && count < n, ArgumentError,
                "stratified split: a part needs at least one sample and must leave one, got {} of {}", count, n);
  const std::vector<std::int32_t> order = rows_by_class(labels, seed);

  struct Class {
    std::size_t begin, size, drawn;
    std::int64_t remainder;  // of its share, in 1/n
  };
  std::vector<Class> classes;
  std::int64_t left = count;
  for (std::size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    const auto label_at = [&](std::size_t i) { return labels[static_cast<std::size_t>(order[i])]; };
    while (end < order.size() && label_at(end) == label_at(begin)) ++end;
    const std::int64_t share = count * static_cast<std::int64_t>(end - begin);
    classes.push_back({begin, end - begin, static_cast<std::size_t>(share / n), share % n});
    left -= share / n;
  }
  // The rows that rounding left over go to the largest remainders.
  std::vector<std::size_t> by_remainder(classes.size());
  std::iota(by_remainder.begin(), by_remainder.end(), std::size_t{0});
  std::ranges::stable_sort(by_remainder, std::ranges::greater{}, [&](std::size_t i) { return classes[i].remainder; });
  for (std::int64_t i = 0; i < left; ++i) ++classes[by_remainder[static_cast<std::size_t>(i)]].drawn;

  std::pair<std::vector<std::int32_t>, std::vector<std::int32_t>> parts;
  for (const Class& one : classes) {
    const auto rows = std::span(order).subspan(one.begin, one.size);
    const auto drawn = rows.first(one.drawn), rest = rows.subspan(one.drawn);
    parts.first.insert(parts.first.end(), rest.begin(), rest.end());
    parts.second.insert(parts.second.end(), drawn.begin(), drawn.end());
  }
  std::ranges::sort(parts.first);
  std::ranges::sort(parts.second);
  return parts;
}

std::pair<Dataset, Dataset> stratified_split(const Dataset& dataset, std::int64_t count, std::uint64_t seed) {
  CONCORD_CHECK(dataset.labels.dtype() == DType::i32 && dataset.labels.shape().rank() == 1, ArgumentError,
                "stratified split of {}: it needs one class for each sample, but the labels are {}", dataset.name,
                dataset.labels.spec().str());
  const auto [rest, drawn] = stratified_rows(dataset.labels.values<std::int32_t>(), count, seed);
  return {subset(dataset, rest), subset(dataset, drawn)};
}

std::vector<std::int64_t> class_counts(std::span<const std::int32_t> labels, int classes) {
  CONCORD_CHECK(classes > 0, ArgumentError, "class counts: the number of classes must be positive, got {}", classes);
  std::vector<std::int64_t> counts(static_cast<std::size_t>(classes));
  for (const std::int32_t label : labels) {
    if (label >= 0 && label < classes) ++counts[static_cast<std::size_t>(label)];
  }
  return counts;
}

std::vector<std::int64_t> class_counts(const Dataset& dataset) {
  CONCORD_CHECK(dataset.labels.dtype() == DType::i32 && dataset.classes > 0, ArgumentError,
                "class counts of {}: its labels are {} and no classes", dataset.name, dataset.labels.spec().str());
  return class_counts(dataset.labels.values<std::int32_t>(), dataset.classes);
}

std::vector<float> balanced_weights(std::span<const std::int64_t> counts) {
  double labels = 0, present = 0;
  for (const std::int64_t count : counts) {
    CONCORD_CHECK(count >= 0, ArgumentError, "balanced weights: a class has {} labels", count);
    labels += static_cast<double>(count);
    present += count > 0 ? 1 : 0;
  }
  CONCORD_CHECK(present > 0, ArgumentError, "balanced weights: there are no labels in {} classes", counts.size());
  std::vector<float> weights(counts.size());
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] > 0) weights[i] = static_cast<float>(labels / (present * static_cast<double>(counts[i])));
  }
  return weights;
}

}  // namespace concord::data
