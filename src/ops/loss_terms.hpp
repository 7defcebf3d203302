// What a loss divides by. A loss may be a sum divided by a weight that depends on the batch, such as the weights of the
// classes or the number of labels that are not ignored. weighted_mean marks such a loss. Code that joins batches
// (accumulated gradients, losses of an epoch or an evaluation) then adds sums and weights and divides once.
#pragma once

#include <optional>
#include <vector>

#include "concord/core/export.hpp"
#include "concord/graph/graph.hpp"

namespace CONCORD_PUBLIC concord {
namespace loss {

/// Returns sum / weight (rank 0), for a loss that is a weighted mean. `sum` and `weight` have one element; the weight
/// depends on the targets and on no parameter. Joined batches give Σ sum / Σ weight. The result is NaN if the weight is
/// 0; training skips such a batch.
Value weighted_mean(Value sum, Value weight);

/// Marks a loss as a sum over its batch: joined batches are added, not averaged. `sum` has one element.
Value total(Value sum);

/// f32 with the shape of `labels`: 0 for each label equal to `ignored`, else 1. Accuracies leave out labels marked 0.
Value kept_labels(Value labels, std::int32_t ignored);

}  // namespace loss

/// A term of a loss, f32 of rank 0. The loss is the sum of its terms.
struct LossTerm {
  enum class Kind : std::uint8_t {
    mean,      // over samples (the default): counts by the number of samples
    weighted,  // sum / weight
    total      // a sum over the batch
  };
  Kind kind = Kind::mean;
  Value sum;     // for `mean`, the value itself
  Value weight;  // only for `weighted`

  /// The contribution of the term to the loss. It is 0 if sum and weight are 0.
  [[nodiscard]] Value value() const;
};

/// Returns the terms of a loss (one element), at most one of each kind and weight. Finds weighted means and totals
/// behind reshapes and in weighted sums of losses; everything else is a mean over samples.
[[nodiscard]] std::vector<LossTerm> terms_of(Value loss);

/// Returns the result of kept_labels for these labels, also through reshapes, or an empty value.
[[nodiscard]] Value find_kept_labels(Graph& graph, Value labels);
/// Returns the ignored label of a result of kept_labels.
[[nodiscard]] std::int32_t ignored_label(Value kept);

}  // namespace concord
