// Operators of ONNX whose result has a shape that depends on data: NonZero, Compress, Unique, NonMaxSuppression. They
// are computed on the host, where the data must be known.
#include <algorithm>
#include <map>

#include "concord/core/check.hpp"
#include "concord/onnx/operators/views.hpp"
#include "concord/onnx/table.hpp"
#include "concord/ops/copy.hpp"

namespace concord::onnx {
namespace {

void non_zero(Call& call) {
  const HostTensor& source = call.host(0);
  const auto rank = static_cast<std::int64_t>(source.dims.size());
  std::vector<Dims> found;
  std::size_t next = 0;
  each_position(source.dims, [&](const Dims& position) {
    if (source.number(next++) != 0) found.push_back(position);
  });
  Dims places;
  for (std::size_t axis = 0; axis < source.dims.size(); ++axis) {
    for (const Dims& position : found) places.push_back(position[axis]);
  }
  call.set(0, HostTensor::of({rank, static_cast<std::int64_t>(found.size())}, std::move(places)));
}

// The slices of x at these indices along an axis; all elements in one row without an axis.
HostTensor slices_at(const HostTensor& source, std::size_t axis, const Dims& indices) {
  Dims dims = source.dims;
  dims[axis] = static_cast<std::int64_t>(indices.size());
  const Dims strides = strides_of(source.dims);
  return picked(source, dims, [&](const Dims& position) {
    std::int64_t place = 0;
    for (std::size_t i = 0; i < position.size(); ++i) {
      place += strides[i] * (i == axis ? indices[static_cast<std::size_t>(position[i])] : position[i]);
    }
    return static_cast<std::size_t>(place);
  });
}

void compress(Call& call) {
  const bool has_axis = call.find("axis") != nullptr;
  Dims kept;
  const HostTensor& condition = call.host(1);
  for (std::int64_t i = 0; i < condition.elements(); ++i) {
    if (condition.integer(static_cast<std::size_t>(i)) != 0) kept.push_back(i);
  }
  const Dims flat{elements_of(call.dims(0))};
  const Dims dims = has_axis ? call.dims(0) : flat;
  const std::size_t axis = has_axis ? axis_of(call.integer("axis", 0), dims.size()) : 0;
  std::erase_if(kept, [&](std::int64_t i) { return i >= dims[axis]; });
  Dims result = dims;
  result[axis] = static_cast<std::int64_t>(kept.size());
  if (elements_of(result) == 0) return call.set_empty(0, call.type(0), result);
  if (call.on_host()) return call.set(0, slices_at(call.host(0).reshaped(dims), axis, kept));
  // Only the condition has to be known.
  const Value x = reshape(call.value(0), Shape(dims));
  std::vector<Value> parts;
  for (const std::int64_t i : kept) parts.push_back(sliced_along(x, axis, i, 1));
  call.set(0, concat(parts, static_cast<std::int64_t>(axis)), call.type(0));
}

void unique(Call& call) {
  const HostTensor& given = call.host(0);
  const bool has_axis = call.find("axis") != nullptr, sorted = call.integer("sorted", 1) != 0;
  const HostTensor source = has_axis ? given : given.reshaped({given.elements()});
  const std::size_t axis = has_axis ? axis_of(call.integer("axis", 0), source.dims.size()) : 0;
  std::vector<std::vector<double>> slices(static_cast<std::size_t>(source.dims[axis]));
  std::size_t next = 0;
  each_position(source.dims, [&](const Dims& position) {
    slices[static_cast<std::size_t>(position[axis])].push_back(source.number(next++));
  });
  struct Group {
    std::int64_t first, count = 0;
  };
  std::map<std::vector<double>, Group> groups;
  for (std::size_t i = 0; i < slices.size(); ++i) {
    ++groups.try_emplace(slices[i], Group{static_cast<std::int64_t>(i)}).first->second.count;
  }
  std::vector<std::pair<std::vector<double>, Group>> order(groups.begin(), groups.end());
  if (!sorted) std::ranges::sort(order, {}, [](const auto& entry) { return entry.second.first; });
  Dims firsts, counts, inverse(slices.size());
  for (std::size_t k = 0; k < order.size(); ++k) {
    firsts.push_back(order[k].second.first);
    counts.push_back(order[k].second.count);
    for (std::size_t i = 0; i < slices.size(); ++i) {
      if (slices[i] == order[k].first) inverse[i] = static_cast<std::int64_t>(k);
    }
  }
  const auto found = static_cast<std::int64_t>(order.size()), all = static_cast<std::int64_t>(slices.size());
  call.set(0, slices_at(source, axis, firsts));
  call.set(1, HostTensor::of({found}, firsts));
  call.set(2, HostTensor::of({all}, std::move(inverse)));
  call.set(3, HostTensor::of({found}, std::move(counts)));
}

// --- boxes

struct Box {
  double top, left, bottom, right;
  [[nodiscard]] double area() const { return (bottom - top) * (right - left); }
};

Box box_at(const HostTensor& boxes, std::size_t index, bool is_centred) {
  const auto number = [&](std::size_t k) { return boxes.number(4 * index + k); };
  if (is_centred) {
    const double x = number(0), y = number(1), width = number(2), height = number(3);
    return {y - height / 2, x - width / 2, y + height / 2, x + width / 2};
  }
  return {std::min(number(0), number(2)), std::min(number(1), number(3)), std::max(number(0), number(2)),
          std::max(number(1), number(3))};
}

double overlap(const Box& a, const Box& b) {
  const double height = std::min(a.bottom, b.bottom) - std::max(a.top, b.top);
  const double width = std::min(a.right, b.right) - std::max(a.left, b.left);
  if (height <= 0 || width <= 0) return 0;
  return height * width / (a.area() + b.area() - height * width);
}

void non_max_suppression(Call& call) {
  const HostTensor& boxes = call.host(0);   // (batch, boxes, 4)
  const HostTensor& scores = call.host(1);  // (batch, classes, boxes)
  CONCORD_CHECK(boxes.dims.size() == 3 && scores.dims.size() == 3 && boxes.dims[2] == 4 &&
                    scores.dims[2] == boxes.dims[1] && scores.dims[0] == boxes.dims[0],
                ShapeError, "boxes must be (N, B, 4) and scores (N, C, B)");
  const std::int64_t most = call.has(2) ? call.integer(2) : 0;
  const double limit = call.has(3) ? call.number(3) : 0;
  const bool is_centred = call.integer("center_point_box", 0) != 0;
  const std::int64_t count = boxes.dims[1], classes = scores.dims[1];
  Dims selected;
  for (std::int64_t batch = 0; batch < scores.dims[0]; ++batch) {
    for (std::int64_t label = 0; label < classes; ++label) {
      const std::int64_t first = (batch * classes + label) * count;
      const auto score = [&](std::int64_t i) { return scores.number(static_cast<std::size_t>(first + i)); };
      const auto box = [&](std::int64_t i) {
        return box_at(boxes, static_cast<std::size_t>(batch * count + i), is_centred);
      };
      Dims order;
      for (std::int64_t i = 0; i < count; ++i) {
        if (!call.has(4) || score(i) > call.number(4)) order.push_back(i);
      }
      std::ranges::stable_sort(order, std::ranges::greater{}, score);
      Dims kept;
      for (const std::int64_t i : order) {
        if (static_cast<std::int64_t>(kept.size()) >= most) break;
        if (std::ranges::none_of(kept, [&](std::int64_t k) { return overlap(box(k), box(i)) > limit; }))
          kept.push_back(i);
      }
      for (const std::int64_t i : kept) selected.insert(selected.end(), {batch, label, i});
    }
  }
  const auto rows = static_cast<std::int64_t>(selected.size()) / 3;
  call.set(0, HostTensor::of({rows, 3}, std::move(selected)));
}

}  // namespace

void add_selections(Table& table) {
  table.add("NonZero", {.since = 9, .run = non_zero, .known = {0}});
  table.add("Compress", {.since = 9, .run = compress, .known = {1}, .host = true});
  table.add("Unique", {.since = 11, .run = unique, .known = {0}});
  table.add("NonMaxSuppression", {.since = 10, .run = non_max_suppression, .known = {0, 1, 2, 3, 4}});
}

}  // namespace concord::onnx
