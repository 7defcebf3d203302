// Folds: rows for cross-validation and stratified splits, and the weights of unequal classes. All of it depends on its
// arguments alone, not on the machine or on threads.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "concord/core/export.hpp"
#include "concord/data/dataset.hpp"

namespace CONCORD_PUBLIC concord {
namespace data {

/// Deals the rows 0 … n-1 in random order to `k` folds. Each row is in one fold; the rows of a fold ascend; sizes
/// differ by at most one. Throws ArgumentError unless 2 <= k <= n < 2^31.
[[nodiscard]] std::vector<std::vector<std::int32_t>> folds(std::int64_t n, int k, std::uint64_t seed = 0);

/// Stratified folds of the rows with these labels: the number of samples of each class differs by at most one between
/// folds, and so does the size. A label that a loss ignores counts as a class.
[[nodiscard]] std::vector<std::vector<std::int32_t>> folds(std::span<const std::int32_t> labels, int k,
                                                           std::uint64_t seed = 0);

/// Draws `count` rows, each class in its share: the number of its rows differs by less than one from its part of
/// `count`. Returns {rest, drawn}; both ascend. Throws ArgumentError unless 0 < count < labels.size() < 2^31.
[[nodiscard]] std::pair<std::vector<std::int32_t>, std::vector<std::int32_t>> stratified_rows(
    std::span<const std::int32_t> labels, std::int64_t count, std::uint64_t seed = 0);

/// As `split`, with each class in its share. Throws ArgumentError as stratified_rows, and if the first column of labels
/// is not one class index for each sample.
[[nodiscard]] std::pair<Dataset, Dataset> stratified_split(const Dataset& dataset, std::int64_t count,
                                                           std::uint64_t seed = 0);

/// The number of labels of each class. Labels outside [0, classes), which a loss ignores, do not count.
[[nodiscard]] std::vector<std::int64_t> class_counts(std::span<const std::int32_t> labels, int classes);
/// Of the first column of labels: samples, or positions and pixels where a sample has a label for each. Throws
/// ArgumentError if the labels are not classes.
[[nodiscard]] std::vector<std::int64_t> class_counts(const Dataset& dataset);

/// Weights under which all classes weigh the same in a loss: n / (k · count) for n labels of k classes, as "balanced"
/// in scikit-learn. A class without labels is not among the k and has the weight 0. Throws ArgumentError if all counts
/// are 0 or one is negative.
[[nodiscard]] std::vector<float> balanced_weights(std::span<const std::int64_t> counts);

}  // namespace data
}  // namespace concord
