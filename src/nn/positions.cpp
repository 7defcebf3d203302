// Positions: angles as expressions of the coordinates, learned rows as a slice or gather.
#include "concord/nn/positions.hpp"

#include <cmath>

#include "concord/core/check.hpp"
#include "concord/nn/init.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/gather.hpp"
#include "concord/ops/pointwise.hpp"

namespace concord::nn {
namespace {

void require_offset(const char* what, Value offset) {
  CONCORD_CHECK(!offset || offset.spec() == TensorSpec(DType::i32, Shape{1}), ShapeError,
                "{}: the offset must be i32 [1], got {}", what, offset.spec().str());
}

/// The position of the row that an element stands in, for a pointwise operator whose operand `offset` is number 0.
Scalar position(Value offset) { return offset ? scalar::coordinate(1) + scalar::input(0) : scalar::coordinate(1); }

Value offset_or_zero(Graph& graph, Value offset) { return offset ? offset : full(graph, Shape{1}, 0); }

}  // namespace

Value rotary(Value x, const RotaryOptions& options) {
  Graph& graph = x.graph();
  const std::size_t rank = x.shape().rank();
  CONCORD_CHECK(rank >= 2 && x.shape()[-1] % 2 == 0, ShapeError, "rotary: expected (…, tokens, an even width), got {}",
                x.shape().str());
  CONCORD_CHECK(options.base > 0, ArgumentError, "rotary: the base {} is not positive", options.base);
  require_offset("rotary", options.offset);
  const std::int64_t width = x.shape()[-1], half = width / 2, tokens = x.shape()[-2];
  const auto slope = static_cast<float>(-2 * std::log(static_cast<double>(options.base)) / static_cast<double>(width));
  const Scalar angle = position(options.offset) * scalar::exp(slope * scalar::coordinate(0));
  const auto turns = pointwise("rotary_angles", {offset_or_zero(graph, options.offset)},
                               {scalar::cos(angle), scalar::sin(angle)}, {DType::f32, DType::f32}, Shape{tokens, half});
  const Value a = options.interleaved ? slice(x, -1, 0, width, 2) : slice(x, -1, 0, half);
  const Value b = options.interleaved ? slice(x, -1, 1, width, 2) : slice(x, -1, half, width);
  const Scalar first = scalar::input(0), second = scalar::input(1), cosine = scalar::input(2), sine = scalar::input(3);
  const auto turned =
      pointwise("rotary", {a, b, turns[0], turns[1]}, {first * cosine - second * sine, second * cosine + first * sine},
                {DType::f32, DType::f32});
  if (!options.interleaved) return concat({turned[0], turned[1]}, -1);
  std::vector<std::int64_t> pairs(a.shape().dims().begin(), a.shape().dims().end());
  pairs.push_back(1);
  const Shape paired(pairs);
  return reshape(concat({reshape(turned[0], paired), reshape(turned[1], paired)}, -1), x.shape());
}

Value sinusoidal_positions(Graph& graph, std::int64_t length, std::int64_t width, Value offset) {
  require_offset("sinusoidal_positions", offset);
  const auto slope = static_cast<float>(-std::log(10000.0) / static_cast<double>(width));
  const Scalar column = scalar::coordinate(0), pair = 2.0F * scalar::floor(column / 2.0F);
  const Scalar angle = position(offset) * scalar::exp(slope * pair);
  return pointwise("sinusoidal_positions", {offset_or_zero(graph, offset)},
                   scalar::select(scalar::equal(column, pair), scalar::sin(angle), scalar::cos(angle)), DType::f32,
                   Shape{length, width});
}

Value SinusoidalPositions::forward(Value x) {
  CONCORD_CHECK(x.shape().rank() == 3, ShapeError, "{}: expected [batch, tokens, width], got {}",
                x.graph().scoped("positions", '/'), x.shape().str());
  return x + sinusoidal_positions(x.graph(), x.shape()[1], x.shape()[2]);
}

LearnedPositions::LearnedPositions(std::int64_t longest, std::int64_t width) : longest_(longest), width_(width) {
  CONCORD_CHECK(longest > 0 && width > 0, ArgumentError, "LearnedPositions: sizes must be positive, got {} and {}",
                longest, width);
  weight_ = make_parameter(Shape{longest, width}, init::normal(0, 1));
}

void LearnedPositions::require(Value x) const {
  CONCORD_CHECK(x.shape().rank() == 3 && x.shape()[1] <= longest_ && x.shape()[2] == width_, ShapeError,
                "{}: expected [batch, at most {} tokens, {}], got {}", x.graph().scoped("positions", '/'), longest_,
                width_, x.shape().str());
}

Value LearnedPositions::forward(Value x) {
  require(x);
  return x + slice(parameter(x.graph(), weight_, "weight"), 0, 0, x.shape()[1]);
}

Value LearnedPositions::operator()(Value x, Value offset) {
  Graph& graph = x.graph();
  const Tracing tracing(graph, *this);
  require(x);
  require_offset("LearnedPositions", offset);
  const Value rows =
      pointwise("positions", {offset}, scalar::coordinate(0) + scalar::input(0), DType::i32, Shape{x.shape()[1]});
  return x + gather(parameter(graph, weight_, "weight"), rows);
}

}  // namespace concord::nn
