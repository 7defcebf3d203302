// Embedding: a gather of rows, whose gradient is summed in a fixed order.
#include "concord/nn/embedding.hpp"

#include "concord/core/check.hpp"
#include "concord/nn/init.hpp"
#include "concord/ops/gather.hpp"

namespace concord::nn {

Embedding::Embedding(std::int64_t count, std::int64_t width, const EmbeddingOptions& options)
    : padding_(options.padding_idx.value_or(-1)) {
  CONCORD_CHECK(count > 0 && width > 0, ArgumentError, "Embedding: sizes must be positive, got {} and {}", count,
                width);
  CONCORD_CHECK(!options.padding_idx || (padding_ >= 0 && padding_ < count), ArgumentError,
                "Embedding: padding_idx {} is outside [0, {})", padding_, count);
  weight_ = make_parameter(Shape{count, width}, init::normal(0, 1));
}

Value Embedding::forward(Value x) {
  Graph& graph = x.graph();
  CONCORD_CHECK(x.dtype() == DType::i32, ShapeError, "{}: expected i32 indices, got {}", graph.scoped("Embedding", '/'),
                x.spec().str());
  return gather(parameter(graph, weight_, "weight"), x, padding_);
}

}  // namespace concord::nn
