// Attention: shape rules, the gradient as two operators of their own, cost.
#include "concord/ops/attention.hpp"

#include <algorithm>
#include <cmath>

#include "concord/core/check.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/random.hpp"
#include "concord/ops/reduce.hpp"
#include "concord/ops/rules.hpp"

namespace concord {
namespace ops {
namespace {

constexpr std::int64_t kMaxWidth = 256;

void expect_heads(std::string_view op, std::string_view role, const TensorSpec& spec, HeadLayout layout) {
  expect_type(op, role, spec, DType::f32);
  CONCORD_CHECK(spec.shape.rank() == 4, ShapeError, "{}: {} must be (batch, {}, width), got {}", op, role,
                layout == HeadLayout::tokens_first ? "length, heads" : "heads, length", spec.shape.str());
  const std::int64_t heads = spec.shape[layout == HeadLayout::tokens_first ? 2 : 1];
  CONCORD_CHECK(heads >= 1 && spec.shape[3] >= 1, ShapeError, "{}: {} {} needs at least one head of at least one value",
                op, role, spec.shape.str());
}

/// Without the operands of the form.
AttentionSizes sizes_of(HeadLayout layout, const Shape& q, const Shape& k) {
  const bool by_tokens = layout == HeadLayout::tokens_first;
  const std::int64_t head_axis = by_tokens ? 2 : 1, token_axis = by_tokens ? 1 : 2;
  return {.batch = q[0],
          .heads = q[head_axis],
          .key_heads = k[head_axis],
          .queries = q[token_axis],
          .keys = k[token_axis],
          .width = q[3],
          .layout = layout};
}

void expect_mask(std::string_view op, const TensorSpec& mask, const Shape& scores) {
  expect_type(op, "mask", mask, DType::f32);
  bool fits = mask.shape.rank() == 4 && mask.shape[3] == scores[3];
  for (std::int64_t axis = 0; fits && axis < 3; ++axis) {
    fits = mask.shape[axis] == scores[axis] || mask.shape[axis] == 1;
  }
  CONCORD_CHECK(fits, ShapeError,
                "{}: the mask must be {} (batch, heads, queries, keys), where each of the first three may be 1, got {}",
                op, scores.str(), mask.shape.str());
}

/// Checks q, k, v and the operands of the form, which begin at `first`.
void expect_operands(std::string_view op, const AttentionForm& form, std::span<const TensorSpec> inputs,
                     std::size_t first) {
  const std::size_t chosen = std::size_t{form.mask} + std::size_t{form.lengths} + std::size_t{form.dropout > 0};
  expect_inputs(op, inputs, first + chosen);
  CONCORD_CHECK(form.dropout >= 0 && form.dropout <= 1, ArgumentError,
                "{}: the dropout probability {} is outside [0, 1]", op, form.dropout);
  CONCORD_CHECK(std::isfinite(form.scale), ArgumentError, "{}: the scale {} is not finite", op, form.scale);
  expect_heads(op, "q", inputs[0], form.layout);
  expect_heads(op, "k", inputs[1], form.layout);
  const Shape& q = inputs[0].shape;
  const Shape& k = inputs[1].shape;
  const AttentionSizes s = sizes_of(form.layout, q, k);
  const std::string heads = fmt::format("a divisor of {}", s.heads);
  CONCORD_CHECK(k[0] == q[0] && k[3] == q[3] && s.heads % s.key_heads == 0, ShapeError,
                "{}: for q {} k must be ({}, {}, {}, {}), got {}", op, q.str(), q[0], s.by_tokens() ? "keys" : heads,
                s.by_tokens() ? heads : "keys", q[3], k.str());
  CONCORD_CHECK(q[3] <= kMaxWidth, NotSupported, "{}: q {}: heads of more than {} values are not supported", op,
                q.str(), kMaxWidth);
  expect_spec(op, "v", inputs[2], DType::f32, k);
  std::size_t next = first;
  if (form.mask) expect_mask(op, inputs[next++], Shape{s.batch, s.heads, s.queries, s.keys});
  if (form.lengths) expect_spec(op, "lengths", inputs[next++], DType::i32, Shape{q[0]});
  if (form.dropout > 0) expect_spec(op, "state", inputs[next], DType::i32, Shape{4});
}

void expect_backward_operands(std::string_view op, const AttentionForm& form, std::span<const TensorSpec> inputs) {
  CONCORD_CHECK(inputs.size() >= 6, ShapeError, "{}: needs at least 6 operands, got {}", op, inputs.size());
  expect_not_empty(op, "q", inputs[0].shape);
  expect_not_empty(op, "k", inputs[1].shape);
  expect_operands(op, form, inputs, 6);
  const Shape& q = inputs[0].shape;
  const AttentionSizes s = sizes_of(form.layout, q, inputs[1].shape);
  expect_spec(op, "diff_dst", inputs[3], DType::f32, q);
  expect_spec(op, "statistics", inputs[4], DType::f32, Shape{2, s.batch, s.heads, s.queries});
  expect_spec(op, "delta", inputs[5], DType::f32, Shape{q[0], q[1], q[2]});
}

/// Of `products` matrix products of queries × keys × width; a causal mask leaves about half of them.
Cost cost_of(const AttentionForm& form, Cost moved, std::span<const TensorSpec> inputs, double products) {
  const AttentionSizes s = sizes_of(form.layout, inputs[0].shape, inputs[1].shape);
  const double scores = static_cast<double>(inputs[0].shape.elements()) * static_cast<double>(s.keys);
  moved.flops = 2 * products * scores * (form.causal == Causal::none ? 1.0 : 0.5);
  return moved;
}

/// Σ_d dst·diff_dst − diff_logsumexp.
Value delta_of(HeadLayout layout, Value dst, Value diff_dst, Value diff_logsumexp) {
  const Value sums = sum(dst * diff_dst, {-1});
  if (!diff_logsumexp) return sums;
  return sums - (layout == HeadLayout::tokens_first ? transpose(diff_logsumexp, {0, 2, 1}) : diff_logsumexp);
}

}  // namespace

std::uint32_t AttentionForm::keep() const {
  constexpr float kAll = 65536;
  if (dropout >= 1) return 0;
  return static_cast<std::uint32_t>(std::clamp(std::round(kAll * (1 - dropout)), 1.0F, kAll - 1));
}

float AttentionForm::kept() const { return keep() == 0 ? 0 : 65536 / static_cast<float>(keep()); }

std::string AttentionForm::str() const {
  std::string text = fmt::format("scale {} causal {}", scale, static_cast<int>(causal));
  if (layout == HeadLayout::tokens_first) text += " tokens_first";
  if (mask) text += " mask";
  if (lengths) text += " lengths";
  if (dropout > 0) text += fmt::format(" dropout {} purpose {}", dropout, purpose);
  return text;
}

std::vector<TensorSpec> Attention::infer(std::span<const TensorSpec> inputs) const {
  CONCORD_CHECK(inputs.size() >= 3, ShapeError, "{}: needs at least 3 operands, got {}", name(), inputs.size());
  expect_operands(name(), form_, inputs, 3);
  const AttentionSizes s = sizes_of(form_.layout, inputs[0].shape, inputs[1].shape);
  if (inputs[0].shape.elements() > 0) expect_not_empty(name(), "k", inputs[1].shape);
  return {
      inputs[0], {DType::f32, Shape{s.batch, s.heads, s.queries}}, {DType::f32, Shape{2, s.batch, s.heads, s.queries}}};
}

std::vector<Value> Attention::gradient(const Node& node, std::span<const Value> diff_dst,
                                       const std::vector<bool>& wanted) const {
  std::vector<Value> diffs = no_gradients(node);
  if (!diff_dst[0] && !diff_dst[1]) return diffs;
  CONCORD_CHECK(!diff_dst[2], NotSupported, "{}: the statistics of attention have no gradient; its logsumexp has one",
                node.name);
  CONCORD_CHECK(!form_.mask || !wanted[3], NotSupported,
                "{}: attention has no gradient through its mask; attention_reference has one", node.name);
  Graph& graph = node.inputs[0].graph();
  const Value dst = output_of(node, 0);
  const Value diff = diff_dst[0] ? diff_dst[0] : full(graph, dst.shape(), 0.0F);
  std::vector<Value> operands(node.inputs.begin(), node.inputs.begin() + 3);
  operands.insert(operands.end(), {diff, output_of(node, 2), delta_of(form_.layout, dst, diff, diff_dst[1])});
  operands.insert(operands.end(), node.inputs.begin() + 3, node.inputs.end());
  if (wanted[0]) diffs[0] = graph.add(std::make_shared<AttentionBackwardQuery>(form_), operands);
  if (wanted[1] || wanted[2]) {
    const Value both = graph.add(std::make_shared<AttentionBackwardKeyValue>(form_), operands);
    if (wanted[1]) diffs[1] = both;
    if (wanted[2]) diffs[2] = Value(&graph, both.node_id(), 1);
  }
  return diffs;
}

Cost Attention::cost(std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs) const {
  return cost_of(form_, Operator::cost(inputs, outputs), inputs, 2);
}

std::vector<TensorSpec> AttentionBackwardQuery::infer(std::span<const TensorSpec> inputs) const {
  expect_backward_operands(name(), form_, inputs);
  return {inputs[0]};
}

Cost AttentionBackwardQuery::cost(std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs) const {
  return cost_of(form_, Operator::cost(inputs, outputs), inputs, 3);
}

std::vector<TensorSpec> AttentionBackwardKeyValue::infer(std::span<const TensorSpec> inputs) const {
  expect_backward_operands(name(), form_, inputs);
  return {inputs[1], inputs[2]};
}

Cost AttentionBackwardKeyValue::cost(std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs) const {
  return cost_of(form_, Operator::cost(inputs, outputs), inputs, 4);
}

AttentionSizes attention_sizes(const AttentionForm& form, std::span<const TensorSpec> inputs, std::size_t first) {
  AttentionSizes sizes = sizes_of(form.layout, inputs[0].shape, inputs[1].shape);
  sizes.mask = first;
  sizes.lengths = first + std::size_t{form.mask};
  sizes.state = sizes.lengths + std::size_t{form.lengths};
  if (form.mask) {
    const Shape& mask = inputs[first].shape;
    const std::vector<std::int64_t> strides = mask.strides();
    for (std::size_t axis = 0; axis < 3; ++axis) {
      sizes.mask_strides[axis] = mask.dims()[axis] == 1 ? 0 : strides[axis];
    }
  }
  return sizes;
}

}  // namespace ops

Value attention(Value q, Value k, Value v, const AttentionOptions& options) {
  Graph& graph = q.graph();
  ops::AttentionForm form{
      .causal = options.causal, .layout = options.layout, .mask = bool{options.mask}, .lengths = bool{options.lengths}};
  form.scale = options.scale.value_or(q.shape().rank() == 4 ? 1 / std::sqrt(static_cast<float>(q.shape()[3])) : 1);
  if (graph.training()) form.dropout = options.dropout;
  std::vector<Value> operands{q, k, v};
  if (form.mask) operands.push_back(options.mask);
  if (form.lengths) operands.push_back(options.lengths);
  if (form.dropout > 0) {
    form.purpose = ops::new_purpose(graph, "attention");
    operands.push_back(graph.random_state());
  }
  return graph.add(std::make_shared<ops::Attention>(form), std::move(operands));
}

}  // namespace concord
