// Classification metrics: hits counted on the device, and the confusion matrix computed on the host.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "concord/core/export.hpp"
#include "concord/graph/graph.hpp"

namespace CONCORD_PUBLIC concord {

/// How many labels of a batch are the class with the largest logit, and among the k largest. A count is f32 [2] and
/// stands for c0 + c1·kHitUnit: one number would not be exact above 2^24 labels.
struct Hits {
  Value first, among_k;
  Value labels;  // the number of labels that count; empty: all
};
inline constexpr std::int64_t kHitUnit = 4096;
/// The largest increase of either number of a count by one batch with labels of this shape.
[[nodiscard]] std::int64_t most_hits(const Shape& labels);
/// Counts hits. logits f32 (…, C), labels i32 (…). Of equal logits the lower class comes first. A label whose own logit
/// is not finite is not a hit. `kept` f32 has 1 for each label that counts, else 0; empty: all labels count.
[[nodiscard]] Hits count_hits(Value logits, Value labels, int k, Value kept = {});

/// (N, …, C, …) → (N, …, C).
[[nodiscard]] Value with_classes_last(Value outputs, std::size_t class_axis);
/// The part of the labels that are hits, joined over batches by the labels that count (loss::weighted_mean). Labels
/// that the loss ignored in this graph do not count.
[[nodiscard]] Value accuracy(Value outputs, Value labels, std::size_t class_axis);

/// Returns counts[label, predicted] as i32 [C, C]. outputs f32 (N, C), whose largest entry is the prediction; labels
/// i32 (N). Skips labels equal to `ignored`. Throws ShapeError if the shapes do not match, ArgumentError for a label
/// outside [0, C).
[[nodiscard]] Tensor confusion_matrix(const Tensor& outputs, const Tensor& labels,
                                      std::optional<std::int32_t> ignored = {});

}  // namespace concord
