// What a loss averages over. A loss that is a sum divided by a weight that the batch decides (the weights of classes,
// the labels that are not ignored) says so by how it is built; what joins several batches to one, accumulation and the
// losses of an epoch or an evaluation, then adds sums and weights and divides once.
#pragma once

#include <optional>
#include <vector>

#include "concord/core/export.hpp"
#include "concord/graph/graph.hpp"

namespace CONCORD_PUBLIC concord {
namespace loss {

/// sum / weight, of rank 0, for a loss that is a mean with weights of its own. `sum` and `weight` are one number each;
/// the weight comes from the targets and depends on no parameter. Batches that are joined are Σ sum / Σ weight. NaN
/// where the weight is 0: a training takes such a batch for one that counts nothing.
Value weighted_mean(Value sum, Value weight);

/// A loss that is a sum over its batch: batches that are joined are added, not averaged. `sum` is one number.
Value total(Value sum);

/// 1 for each label that counts, 0 for each that is `ignored`; f32, in the labels' shape. Accuracies leave out what
/// such a value says of a batch's labels.
Value kept_labels(Value labels, std::int32_t ignored);

}  // namespace loss

/// A part of a loss, f32 of rank 0. The loss is the sum of its parts' values.
struct LossTerm {
  enum class Kind : std::uint8_t {
    mean,      // over samples, as far as is known: counts by their number
    weighted,  // sum / weight
    total      // a sum over the batch
  };
  Kind kind = Kind::mean;
  Value sum;     // of `mean` the value itself
  Value weight;  // of `weighted` only

  /// What the term adds to the loss; 0 where the weight is 0 and the sum is, too.
  [[nodiscard]] Value value() const;
};

/// The parts of a loss (one element): one of each kind and weight at most. Weighted means and totals are found behind
/// reshapes and in sums of multiples of losses; everything else is a mean over samples.
[[nodiscard]] std::vector<LossTerm> terms_of(Value loss);

/// The value that kept_labels made of these labels, reshaped or not, where the graph has one.
[[nodiscard]] Value find_kept_labels(Graph& graph, Value labels);
/// The label that it leaves out.
[[nodiscard]] std::int32_t ignored_label(Value kept);

}  // namespace concord
