// Embedding: a table of vectors looked up by index.
#pragma once

#include "concord/core/export.hpp"
#include "concord/nn/module.hpp"

namespace CONCORD_PUBLIC concord {
namespace nn {

struct EmbeddingOptions {
  std::optional<std::int64_t> padding_idx;  // a row that starts as zeros and is not trained
};

/// x i32 (…) → (…, width): the rows of weight (count, width) at these indices. An index outside [0, count) gives NaN.
class Embedding : public Module {
 public:
  /// Throws ArgumentError for sizes below 1, and for a padding_idx outside [0, count).
  Embedding(std::int64_t count, std::int64_t width, const EmbeddingOptions& options = {});
  [[nodiscard]] Value forward(Value x) override;
  [[nodiscard]] const VariablePtr& weight() const { return weight_; }

 private:
  std::int64_t padding_;
  VariablePtr weight_;
};

}  // namespace nn
}  // namespace concord
