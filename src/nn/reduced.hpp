// What the losses have in common. Internal to the room.
#pragma once

#include "concord/core/check.hpp"
#include "concord/nn/loss.hpp"
#include "concord/ops/loss_terms.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/reduce.hpp"

namespace concord::loss {

[[nodiscard]] inline Value reduced(Value losses, Reduction reduction) {
  switch (reduction) {
    case Reduction::mean: return mean(losses);
    case Reduction::sum: return total(sum(losses));
    case Reduction::none: return losses;
  }
  throw ArgumentError("unknown reduction");
}

/// −t·log σ(x) − (1−t)·log(1 − σ(x)) of input(0), x, and input(1), t. softplus(x) − t·x would cancel for large x, and
/// so would its derivative; here the large part is exact for t of 0 and 1, and 0 where the loss is small.
[[nodiscard]] inline Scalar bce_with_logits_formula() {
  const Scalar x = scalar::input(0), t = scalar::input(1), positive = scalar::less(0.0F, x);
  const Scalar large = scalar::select(positive, x * (1.0F - t), -(x * t));
  return large + scalar::softplus(scalar::select(positive, -x, x));
}

inline void expect_same_shape(const char* loss, Value prediction, Value target) {
  CONCORD_CHECK(prediction.shape() == target.shape(), ShapeError, "{}: prediction {} and target {} differ in shape",
                loss, prediction.shape().str(), target.shape().str());
}

}  // namespace concord::loss
