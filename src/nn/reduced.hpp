// What the losses have in common. Internal to the room.
#pragma once

#include "concord/core/check.hpp"
#include "concord/nn/loss.hpp"
#include "concord/ops/reduce.hpp"

namespace concord::loss {

[[nodiscard]] inline Value reduced(Value losses, Reduction reduction) {
  switch (reduction) {
    case Reduction::mean: return mean(losses);
    case Reduction::sum: return sum(losses);
    case Reduction::none: return losses;
  }
  throw ArgumentError("unknown reduction");
}

inline void expect_same_shape(const char* loss, Value prediction, Value target) {
  CONCORD_CHECK(prediction.shape() == target.shape(), ShapeError, "{}: prediction {} and target {} differ in shape",
                loss, prediction.shape().str(), target.shape().str());
}

}  // namespace concord::loss
