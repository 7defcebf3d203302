// Copies: transpose, slice, pad and concat move numbers and compute none.
#include "concord/ops/copy.hpp"

#include "concord/compare/reference64/families.hpp"

namespace concord::float64 {
namespace {

using Strides = std::vector<std::int64_t>;

/// visit(i, place): the elements of `dims` in row-major order, and first + Σ index·stride.
void walk(std::span<const std::int64_t> dims, const Strides& strides, std::int64_t first, auto&& visit) {
  std::int64_t count = 1;
  for (const std::int64_t dim : dims) count *= dim;
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t rest = i, place = first;
    for (std::size_t d = dims.size(); d-- > 0;) {
      place += rest % dims[d] * strides[d];
      rest /= dims[d];
    }
    visit(static_cast<std::size_t>(i), static_cast<std::size_t>(place));
  }
}

/// Of an element `start` and steps of `step` in a tensor with these strides.
struct Stepped {
  std::int64_t first = 0;
  Strides strides;
  Stepped(const std::vector<std::int64_t>& start, const std::vector<std::int64_t>& step, Strides whole)
      : strides(std::move(whole)) {
    for (std::size_t d = 0; d < strides.size(); ++d) {
      first += start[d] * strides[d];
      strides[d] *= step[d];
    }
  }
};

Values transposed(const ops::Transpose& op, const Tensor& src, const Tensor& dst) {
  const Values from = doubles(src);
  const Strides whole = src.shape().strides();
  Strides strides;
  for (const std::size_t axis : op.order()) strides.push_back(whole[axis]);
  Values result = zeros(dst);
  walk(dst.shape().dims(), strides, 0, [&](std::size_t i, std::size_t place) { result[i] = from[place]; });
  return result;
}

Values sliced(const ops::Slice& op, const Tensor& src, const Tensor& dst) {
  const Values from = doubles(src);
  const Stepped steps(op.start(), op.step(), src.shape().strides());
  Values result = zeros(dst);
  walk(dst.shape().dims(), steps.strides, steps.first,
       [&](std::size_t i, std::size_t place) { result[i] = from[place]; });
  return result;
}

Values padded(const ops::Pad& op, const Tensor& src, const Tensor& dst) {
  const Values from = doubles(src);
  const Stepped steps(op.before(), op.step(), dst.shape().strides());
  Values result(static_cast<std::size_t>(dst.elements()), op.value());
  walk(src.shape().dims(), steps.strides, steps.first,
       [&](std::size_t i, std::size_t place) { result[place] = from[i]; });
  return result;
}

Values joined(const ops::Concat& op, const std::vector<Tensor>& sources, const Tensor& dst) {
  const Strides strides = dst.shape().strides();
  Values result = zeros(dst);
  std::int64_t first = 0;
  for (const Tensor& src : sources) {
    const Values from = doubles(src);
    walk(src.shape().dims(), strides, first, [&](std::size_t i, std::size_t place) { result[place] = from[i]; });
    first += src.shape().dims()[op.axis()] * strides[op.axis()];
  }
  return result;
}

}  // namespace

Results copy(const ReplayedNode& node) {
  const Tensor& dst = node.results[0];
  if (const auto* op = dynamic_cast<const ops::Transpose*>(node.op)) return {{transposed(*op, node.inputs[0], dst)}};
  if (const auto* op = dynamic_cast<const ops::Slice*>(node.op)) return {{sliced(*op, node.inputs[0], dst)}};
  if (const auto* op = dynamic_cast<const ops::Pad*>(node.op)) return {{padded(*op, node.inputs[0], dst)}};
  if (const auto* op = dynamic_cast<const ops::Concat*>(node.op)) return {{joined(*op, node.inputs, dst)}};
  return {};
}

}  // namespace concord::float64
