// Losses with a margin: of scores (hinge) and of distances between embeddings. As PyTorch defines them where it does.
#pragma once

#include "concord/core/export.hpp"
#include "concord/nn/loss.hpp"

namespace CONCORD_PUBLIC concord {
namespace loss {

/// Scores and targets ±1 of one shape: max(0, margin − t·x), or its square.
struct Hinge {
  float margin = 1;
  bool squared = false;
  Reduction reduction = Reduction::mean;
  Value operator()(Value scores, Value target) const;
};

/// scores (N, C); target i32 (N). Σ_{c≠t} max(0, margin − x_t + x_c)^p / C, p = 1 or 2. A class index outside [0, C)
/// gives NaN.
struct MultiMargin {
  float margin = 1;
  int p = 1;
  Reduction reduction = Reduction::mean;
  Value operator()(Value scores, Value target) const;
};

/// a, b (N, D) and target f32 (N): 1 − cos(a, b) where it is 1, max(0, cos(a, b) − margin) where it is −1.
struct CosineEmbedding {
  float margin = 0;
  Reduction reduction = Reduction::mean;
  Value operator()(Value a, Value b, Value target) const;
};

/// a, b (N, D) and target f32 (N): d²/2 where it is 1 (alike), max(0, margin − d)²/2 where it is 0, with d the
/// Euclidean distance of a and b + eps (Hadsell, Chopra, LeCun, 2006).
struct Contrastive {
  float margin = 1;
  float eps = 1e-6F;
  Reduction reduction = Reduction::mean;
  Value operator()(Value a, Value b, Value target) const;
};

/// anchor, positive, negative (N, D): max(0, d(anchor, positive) − d(anchor, negative) + margin) with d(x, y) the
/// p-norm of x − y + eps. `swap`: the negative counts by its distance to anchor or positive, whichever is nearer
/// (Balntas et al., 2016).
struct TripletMargin {
  float margin = 1;
  float p = 2;
  float eps = 1e-6F;
  bool swap = false;
  Reduction reduction = Reduction::mean;
  Value operator()(Value anchor, Value positive, Value negative) const;
};

inline constexpr Hinge hinge{};
inline constexpr MultiMargin multi_margin{};
inline constexpr CosineEmbedding cosine_embedding{};
inline constexpr Contrastive contrastive{};
inline constexpr TripletMargin triplet_margin{};

}  // namespace loss
}  // namespace concord
