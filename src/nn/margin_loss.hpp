// Losses with a margin, of scores (hinge) and of distances between embeddings. They equal PyTorch's where PyTorch has
// them.
#pragma once

#include "concord/core/export.hpp"
#include "concord/nn/loss.hpp"

namespace CONCORD_PUBLIC concord {
namespace loss {

/// max(0, margin − t·x), or its square. Scores and targets ±1 have one shape.
struct Hinge {
  float margin = 1;
  bool squared = false;
  Reduction reduction = Reduction::mean;
  Value operator()(Value scores, Value target) const;
};

/// Σ_{c≠t} max(0, margin − x_t + x_c)^p / C with p = 1 or 2. scores (N, C); target i32 (N). A class index outside [0,
/// C) gives NaN.
struct MultiMargin {
  float margin = 1;
  int p = 1;
  Reduction reduction = Reduction::mean;
  Value operator()(Value scores, Value target) const;
};

/// 1 − cos(a, b) for target 1; max(0, cos(a, b) − margin) for target −1. a, b (N, D); target f32 (N).
struct CosineEmbedding {
  float margin = 0;
  Reduction reduction = Reduction::mean;
  Value operator()(Value a, Value b, Value target) const;
};

/// d²/2 for target 1 (similar); max(0, margin − d)²/2 for target 0. d is the Euclidean norm of a − b + eps. a, b (N,
/// D); target f32 (N) (Hadsell, Chopra and LeCun, 2006).
struct Contrastive {
  float margin = 1;
  float eps = 1e-6F;
  Reduction reduction = Reduction::mean;
  Value operator()(Value a, Value b, Value target) const;
};

/// max(0, d(anchor, positive) − d(anchor, negative) + margin), where d(x, y) is the p-norm of x − y + eps. anchor,
/// positive, negative (N, D). `swap`: uses d(positive, negative) if it is less than d(anchor, negative) (Balntas et
/// al., 2016).
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
