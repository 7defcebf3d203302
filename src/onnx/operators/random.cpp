// Random operators of ONNX, and Dropout. The numbers are those of Concord's random stream, not of a `seed` in the file.
#include "concord/ops/random.hpp"

#include "concord/core/check.hpp"
#include "concord/onnx/operators/pointwise_call.hpp"
#include "concord/onnx/table.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/rearrange.hpp"

namespace concord::onnx {
namespace {

ElementType result_type(const Call& call, ElementType otherwise) {
  return static_cast<ElementType>(call.integer("dtype", static_cast<std::int64_t>(otherwise)));
}

void random_normal_of(Call& call, const Dims& dims, ElementType type) {
  call.set(0, random_normal(call.graph(), Shape(dims), call.number("mean", 0), call.number("scale", 1)), type);
}

void random_uniform_of(Call& call, const Dims& dims, ElementType type) {
  call.set(0, random_uniform(call.graph(), Shape(dims), call.number("low", 0), call.number("high", 1)), type);
}

void normal(Call& call) {
  random_normal_of(call, call.required_integers("shape"), result_type(call, ElementType::f32));
}
void uniform(Call& call) {
  random_uniform_of(call, call.required_integers("shape"), result_type(call, ElementType::f32));
}
void normal_like(Call& call) { random_normal_of(call, call.dims(0), result_type(call, call.type(0))); }
void uniform_like(Call& call) { random_uniform_of(call, call.dims(0), result_type(call, call.type(0))); }

void bernoulli(Call& call) {
  const Value drawn = random_uniform(call.graph(), Shape(call.dims(0)));
  call.set(0, pointwise("bernoulli", {drawn, call.number_value(0)}, scalar::less(scalar::input(0), scalar::input(1))),
           result_type(call, call.type(0)));
}

void multinomial(Call& call) {
  const std::int64_t samples = call.integer("sample_size", 1);
  std::vector<Value> draws;
  for (std::int64_t i = 0; i < samples; ++i) draws.push_back(random_categorical(call.number_value(0)));
  call.set(0, stack(draws, 1), result_type(call, ElementType::i32));
}

// Drops in a graph for training. A node whose input training_mode is true drops always.
void dropout_of(Call& call) {
  float ratio = call.number("ratio", 0.5F);
  bool drops = call.graph().training();
  if (call.opset() >= 12) {
    if (call.has(1)) ratio = static_cast<float>(call.number(1));
    if (call.has(2) && call.is_known(2)) drops = drops || call.integer(2) != 0;
  }
  CONCORD_CHECK(ratio >= 0 && ratio < 1, ArgumentError, "a ratio of {}", ratio);
  const ElementType mask_type = call.opset() >= 10 ? ElementType::boolean : call.type(0);
  if (!drops || ratio == 0) {
    call.set(0, call.operand(0));
    if (call.wants(1)) call.set(1, full(call.graph(), Shape(call.dims(0)), 1), mask_type);
    return;
  }
  const Value kept = random_mask(call.graph(), Shape(call.dims(0)), 1 - ratio, 1, "dropout");
  call.set(0, call.number_value(0) * kept / (1 - ratio), call.type(0));
  if (call.wants(1)) call.set(1, kept, mask_type);
}

}  // namespace

void add_random(Table& table) {
  table.add("RandomNormal", {.run = normal});
  table.add("RandomUniform", {.run = uniform});
  table.add("RandomNormalLike", {.run = normal_like});
  table.add("RandomUniformLike", {.run = uniform_like});
  table.add("Bernoulli", {.since = 15, .run = bernoulli});
  table.add("Multinomial", {.since = 7, .run = multinomial});
  table.add("Dropout", {.run = dropout_of});
  table.add("Dropout", {.since = 12, .run = dropout_of, .known = {1, 2}});
}

}  // namespace concord::onnx
