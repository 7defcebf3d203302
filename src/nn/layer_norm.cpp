// Layer and RMS normalisation: the rows of the last dimensions, then scale and shift.
#include "concord/nn/layer_norm.hpp"

#include <algorithm>

#include "concord/core/check.hpp"
#include "concord/nn/init.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/row_norm.hpp"

namespace concord::nn {
namespace {

Shape checked(const char* layer, std::vector<std::int64_t> dims) {
  CONCORD_CHECK(!dims.empty() && std::ranges::all_of(dims, [](std::int64_t d) { return d > 0; }), ArgumentError,
                "{}: the normalised shape needs at least one dimension, and sizes above 0", layer);
  return Shape(std::move(dims));
}

/// The first axis of x to be normalised. Throws ShapeError unless x ends with `shape`.
std::int64_t first_axis(const char* layer, Value x, const Shape& shape) {
  const auto dims = x.shape().dims();
  CONCORD_CHECK(dims.size() >= shape.rank() && std::ranges::equal(dims.last(shape.rank()), shape.dims()), ShapeError,
                "{}: expected dimensions ending with {}, got {}", x.graph().scoped(layer, '/'), shape.str(),
                x.shape().str());
  return static_cast<std::int64_t>(dims.size() - shape.rank());
}

}  // namespace

LayerNorm::LayerNorm(std::vector<std::int64_t> normalized_shape, const LayerNormOptions& options)
    : shape_(checked("LayerNorm", std::move(normalized_shape))), epsilon_(options.epsilon) {
  if (options.elementwise_affine) weight_ = make_parameter(shape_, init::constant(1));
  if (options.elementwise_affine && options.bias) bias_ = make_parameter(shape_, init::constant(0));
}

Value LayerNorm::forward(Value x) {
  Graph& graph = x.graph();
  const Value dst = row_norm(x, first_axis("LayerNorm", x, shape_), epsilon_).dst;
  if (!weight_) return dst;
  const Value scaled = dst * parameter(graph, weight_, "weight");
  return bias_ ? scaled + parameter(graph, bias_, "bias") : scaled;
}

RMSNorm::RMSNorm(std::vector<std::int64_t> normalized_shape, const RMSNormOptions& options)
    : shape_(checked("RMSNorm", std::move(normalized_shape))), epsilon_(options.epsilon) {
  if (options.elementwise_affine) weight_ = make_parameter(shape_, init::constant(1));
}

Value RMSNorm::forward(Value x) {
  const Value dst = row_norm_rms(x, first_axis("RMSNorm", x, shape_), epsilon_).dst;
  return weight_ ? dst * parameter(x.graph(), weight_, "weight") : dst;
}

}  // namespace concord::nn
