// KeyValueCache: new rows put in place by a pointwise choice between old and new.
#include "concord/nn/key_value_cache.hpp"

#include <algorithm>

#include "concord/core/check.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/gather.hpp"
#include "concord/ops/pointwise.hpp"

namespace concord::nn {

KeyValueCache::KeyValueCache(std::int64_t batch, std::int64_t key_heads, std::int64_t longest, std::int64_t width) {
  CONCORD_CHECK(batch > 0 && key_heads > 0 && longest > 0 && width > 0, ArgumentError,
                "KeyValueCache: sizes must be positive, got batch {}, {} heads, {} tokens, width {}", batch, key_heads,
                longest, width);
  shape_ = Shape{batch, key_heads, longest, width};
  keys_ = std::make_shared<Variable>(std::string(), TensorSpec{DType::f32, shape_});
  values_ = std::make_shared<Variable>(std::string(), TensorSpec{DType::f32, shape_});
  position_ = std::make_shared<Variable>(std::string(), TensorSpec{DType::i32, Shape{1}});
}

Value KeyValueCache::value_of(Graph& graph, const VariablePtr& variable, const char* name) {
  const auto in_graph = graph.variables();
  if (std::ranges::find(in_graph, variable) == in_graph.end()) variable->name = graph.scoped(name, '.');
  return graph.variable(variable);
}

Value KeyValueCache::position(Graph& graph) { return value_of(graph, position_, "cache.position"); }

/// Row r of `held` where r lies outside position … position + T, else row r − position of `fresh`.
Value KeyValueCache::written(Value held, Value fresh, Value position) const {
  const std::int64_t tokens = fresh.shape()[2];
  const auto last = static_cast<float>(tokens - 1);
  Value rows = fresh;  // one row is broadcast
  if (tokens > 1) {
    const Scalar row = scalar::coordinate(0) - scalar::input(0);
    const Value indices =
        pointwise("cache_rows", {position}, scalar::min(scalar::max(row, 0.0F), last), DType::i32, Shape{shape_[2]});
    rows = transpose(gather(transpose(fresh, {2, 0, 1, 3}), indices), {1, 2, 0, 3});
  }
  const Scalar row = scalar::coordinate(1) - scalar::input(2);
  const Scalar is_new = scalar::less_equal(0.0F, row) * scalar::less_equal(row, last);
  return pointwise("cache", {held, rows, position}, scalar::select(is_new, scalar::input(1), scalar::input(0)));
}

KeyValueCache::Extended KeyValueCache::extend(Value keys, Value values) {
  Graph& graph = keys.graph();
  const Shape& got = keys.shape();
  CONCORD_CHECK(got.rank() == 4 && got[0] == shape_[0] && got[1] == shape_[1] && got[2] <= shape_[2] &&
                    got[3] == shape_[3] && values.shape() == got,
                ShapeError,
                "{}: a cache of {} needs keys and values with the same batch, heads and width and at most {} tokens, "
                "got {} and {}",
                graph.scoped("cache", '/'), shape_.str(), shape_[2], got.str(), values.shape().str());
  const Value before = position(graph);
  Extended all;
  const Value old_keys = value_of(graph, keys_, "cache.keys"), old_values = value_of(graph, values_, "cache.values");
  all.keys = written(old_keys, keys, before);
  all.values = written(old_values, values, before);
  const Scalar after = scalar::input(0) + static_cast<float>(got[2]);
  all.lengths = pointwise("cache_lengths", {before}, after, DType::i32, Shape{shape_[0]});
  graph.assign(old_keys, all.keys);
  graph.assign(old_values, all.values);
  graph.assign(before, pointwise("cache_position", {before}, after, DType::i32));
  return all;
}

void KeyValueCache::reset(Variables& variables) const {
  // Before the first program with this cache is compiled there is nothing to forget.
  if (!variables.contains(position_->name)) return;
  variables.write(position_->name, Tensor(DType::i32, Shape{1}));
}

}  // namespace concord::nn
