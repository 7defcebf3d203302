// The functions of the copy family as users call them: axes and ranges are completed here, and what would copy a
// tensor onto itself gives the tensor.
#include <fmt/ranges.h>

#include "concord/core/check.hpp"
#include "concord/ops/copy.hpp"

namespace concord {
namespace {

/// The product of the sizes that are not 0, and how many are. An open dimension is divided out of such products, so
/// that (0, 8, 2, 2) becomes (0, 8, 4) as a batch of any other size would.
struct Counted {
  std::int64_t product = 1, zeros = 0;
  void add(std::int64_t dim) {
    if (dim == 0) {
      ++zeros;
    } else {
      product *= dim;
    }
  }
};

}  // namespace

Value reshape(Value x, std::vector<std::int64_t> dims) {
  Counted known, all;
  std::int64_t* open = nullptr;
  for (std::int64_t& dim : dims) {
    CONCORD_CHECK(dim >= -1 && (dim != -1 || open == nullptr), ShapeError,
                  "reshape: {} to [{}]: one dimension may be -1, the others are sizes", x.shape().str(),
                  fmt::join(dims, ", "));
    if (dim == -1) {
      open = &dim;
    } else {
      known.add(dim);
    }
  }
  if (open != nullptr) {
    for (const std::int64_t dim : x.shape().dims()) all.add(dim);
    const bool keeps_zeros = known.zeros == all.zeros;
    CONCORD_CHECK(keeps_zeros ? all.product % known.product == 0 : known.zeros == 0, ShapeError,
                  "reshape: {} to [{}]: the open dimension does not follow from {} elements", x.shape().str(),
                  fmt::join(dims, ", "), x.shape().elements());
    *open = keeps_zeros ? all.product / known.product : 0;
  }
  return reshape(x, Shape(std::move(dims)));
}

Value reshape(Value x, const Shape& shape) {
  return x.shape() == shape ? x : x.graph().add(std::make_shared<ops::Reshape>(shape), {x});
}

Value flatten(Value x, std::int64_t start_axis) {
  const std::size_t start = x.shape().index_of(start_axis);
  const auto kept = x.shape().dims().first(start);
  std::int64_t rest = 1;
  for (const std::int64_t dim : x.shape().dims().subspan(start)) rest *= dim;
  std::vector<std::int64_t> dims(kept.begin(), kept.end());
  dims.push_back(rest);
  return reshape(x, Shape(std::move(dims)));
}

Value transpose(Value x, std::vector<std::int64_t> order) {
  std::vector<std::size_t> axes;
  bool is_identity = order.size() == x.shape().rank();
  for (std::size_t i = 0; i < order.size(); ++i) {
    axes.push_back(x.shape().index_of(order[i]));
    is_identity = is_identity && axes[i] == i;
  }
  return is_identity ? x : x.graph().add(std::make_shared<ops::Transpose>(std::move(axes)), {x});
}

Value slice(Value x, std::int64_t axis, std::int64_t start, std::int64_t stop, std::int64_t step) {
  const std::size_t index = x.shape().index_of(axis);
  const std::int64_t size = x.shape().dims()[index];
  const std::int64_t first = start < 0 ? start + size : start;
  const std::int64_t last = stop < 0 ? stop + size : stop;
  CONCORD_CHECK(step >= 1 && first >= 0 && first <= last && last <= size, ShapeError,
                "slice: {}:{}:{} does not lie inside axis {} of {}", start, stop, step, axis, x.shape().str());
  if (first == 0 && last == size && step == 1) return x;
  std::vector<std::int64_t> starts(x.shape().rank(), 0);
  std::vector<std::int64_t> steps(x.shape().rank(), 1);
  std::vector<std::int64_t> dims(x.shape().dims().begin(), x.shape().dims().end());
  starts[index] = first;
  steps[index] = step;
  dims[index] = (last - first + step - 1) / step;
  return x.graph().add(std::make_shared<ops::Slice>(std::move(starts), std::move(steps), Shape(std::move(dims))), {x});
}

Value pad(Value x, std::vector<std::int64_t> before, std::vector<std::int64_t> after, float value) {
  const std::size_t rank = x.shape().rank();
  CONCORD_CHECK(before.size() == rank && after.size() == rank, ShapeError,
                "pad: {} needs {} sizes before and after, got {} and {}", x.shape().str(), rank, before.size(),
                after.size());
  std::vector<std::int64_t> dims;
  for (std::size_t i = 0; i < rank; ++i) {
    CONCORD_CHECK(before[i] >= 0 && after[i] >= 0, ShapeError, "pad: {}: sizes before [{}] and after [{}] must be >= 0",
                  x.shape().str(), fmt::join(before, ", "), fmt::join(after, ", "));
    dims.push_back(before[i] + x.shape().dims()[i] + after[i]);
  }
  const Shape dst(std::move(dims));
  if (dst == x.shape()) return x;
  return x.graph().add(std::make_shared<ops::Pad>(std::move(before), std::vector<std::int64_t>(rank, 1), dst, value),
                       {x});
}

Value concat(std::vector<Value> values, std::int64_t axis) {
  CONCORD_CHECK(!values.empty(), ArgumentError, "concat: needs at least one value");
  const Value first = values.front();
  if (values.size() == 1) return first;
  return first.graph().add(std::make_shared<ops::Concat>(first.shape().index_of(axis)), std::move(values));
}

}  // namespace concord
