// Metrics of classification: hits counted on the device, and the confusion matrix on the host.
#pragma once

#include <optional>
#include <string>

#include "concord/core/export.hpp"
#include "concord/graph/graph.hpp"

namespace CONCORD_PUBLIC concord {

/// How many labels of a batch come first, and among the k first. A count is f32 [2], c0 + c1·kHitUnit: the labels of
/// one sample may be more than the 2^24 up to which f32 counts exactly, and so may those of a batch.
struct Hits {
  Value first, among_k;
  Value labels;  // that count; empty where all do
};
inline constexpr std::int64_t kHitUnit = 4096;
/// The most that one batch adds to either number of a count, for labels of this shape.
[[nodiscard]] std::int64_t most_hits(const Shape& labels);
/// logits f32 (…, C), labels i32 (…). Of equal logits the lower class comes first; a row whose own logit is not finite
/// is no hit. `kept` f32, 1 or 0 for each label in their order, says which count; empty: all.
[[nodiscard]] Hits count_hits(Value logits, Value labels, int k, Value kept = {});

/// counts[label, predicted] as i32 [C, C] from outputs f32 (N, C), whose largest entry is the prediction, and labels
/// i32 (N); those that are `ignored` are left out. Throws ShapeError when they do not fit, ArgumentError for a label
/// outside [0, C).
[[nodiscard]] Tensor confusion_matrix(const Tensor& outputs, const Tensor& labels,
                                      std::optional<std::int32_t> ignored = {});

}  // namespace concord
