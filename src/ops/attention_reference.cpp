// Attention from matrix products and softmax: what the fused operator is held against, and the form with a gradient
// through the mask.
#include <cmath>
#include <limits>

#include "concord/core/check.hpp"
#include "concord/ops/attention.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/matmul.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/random.hpp"
#include "concord/ops/reduce.hpp"
#include "concord/ops/softmax.hpp"
#include "concord/ops/stop_gradient.hpp"

namespace concord {
namespace {

constexpr float kHidden = -std::numeric_limits<float>::infinity();

/// 1 where query t sees key s, else 0, (B|1, 1, T, S).
Value visible(Value lengths, ops::Causal causal, Graph& graph, const Shape& scores) {
  const Scalar key = scalar::coordinate(0), query = scalar::coordinate(1);
  const auto keys = static_cast<float>(scores[3]), queries = static_cast<float>(scores[2]);
  const Scalar length = lengths ? scalar::min(scalar::input(0), keys) : Scalar(keys);
  Scalar limit = length;
  if (causal == ops::Causal::first) limit = scalar::min(length, query + 1.0F);
  if (causal == ops::Causal::last) limit = scalar::min(length, query + 1.0F + length - queries);
  const Shape shape{1, 1, scores[2], scores[3]};
  const std::vector<Value> operands = lengths ? std::vector{reshape(lengths, Shape{scores[0], 1, 1, 1})}
                                              : std::vector{full(graph, Shape{1, 1, 1, 1}, 0.0F)};
  return pointwise("visible", operands, scalar::less(key, limit), DType::f32, shape);
}

}  // namespace

Value attention_reference(Value q, Value k, Value v, const AttentionOptions& options) {
  if (options.layout == ops::HeadLayout::tokens_first) {
    AttentionOptions by_heads = options;
    by_heads.layout = ops::HeadLayout::heads_first;
    const auto turn = [](Value x) { return transpose(x, {0, 2, 1, 3}); };
    return turn(attention_reference(turn(q), turn(k), turn(v), by_heads));
  }
  // The checks are those of the fused operator.
  ops::AttentionForm form{.causal = options.causal, .mask = bool{options.mask}, .lengths = bool{options.lengths}};
  std::vector<TensorSpec> specs{q.spec(), k.spec(), v.spec()};
  if (form.mask) specs.push_back(options.mask.spec());
  if (form.lengths) specs.push_back(options.lengths.spec());
  static_cast<void>(ops::Attention(form).infer(specs));

  Graph& graph = q.graph();
  const ops::AttentionSizes s = ops::attention_sizes(form, specs, 3);
  const Shape scores_shape{s.batch, s.heads, s.queries, s.keys};
  // Heads that share keys stand below each other in one product.
  const std::int64_t rows = s.heads / s.key_heads * s.queries;
  const Value grouped = reshape(q, Shape{s.batch, s.key_heads, rows, s.width});
  const Value products = reshape(matmul(grouped, k, false, true), scores_shape);
  const Value seen = visible(options.lengths, options.causal, graph, scores_shape);
  const Scalar x = scalar::input(0), sees = scalar::input(1);
  const float scale = options.scale.value_or(1 / std::sqrt(static_cast<float>(s.width)));
  std::vector<Value> operands{products, seen};
  Scalar score = scale * x, hides = scalar::equal(sees, 0.0F);
  if (form.mask) {
    operands.push_back(options.mask);
    const Scalar added = scalar::input(2);
    score = score + added;
    hides = scalar::max(hides, scalar::equal(added, kHidden));
  }
  const Value scores = pointwise("scores", operands, scalar::select(hides, Scalar(kHidden), score));
  // A row that sees nothing takes part in the softmax with scores of 0, so that it has no NaN, and has weights of 0.
  const Value largest = stop_gradient(reduce_max(scores, {-1}, true));
  const Scalar is_empty = scalar::equal(scalar::input(1), kHidden);
  const Value softened = softmax(pointwise("softened", {scores, largest}, scalar::select(is_empty, 0.0F, x)), -1);
  const Value hidden = stop_gradient(scores);
  Value weights = pointwise("weights", {softened, hidden},
                            scalar::select(scalar::equal(scalar::input(1), kHidden), 0.0F, scalar::input(0)));
  if (graph.training() && options.dropout > 0) {
    form.dropout = options.dropout;
    const auto draw =
        std::make_shared<ops::Random>(ops::Distribution::attention, scores_shape, static_cast<float>(form.keep()),
                                      form.kept(), ops::new_purpose(graph, "attention"));
    weights = weights * graph.add(draw, {graph.random_state()});
  }
  const Value dst = matmul(reshape(weights, Shape{s.batch, s.key_heads, rows, s.keys}), v);
  return reshape(dst, q.shape());
}

}  // namespace concord
