// Steps that several operators of ONNX share: axes, slices, repetition. Internal to the room.
#pragma once

#include <vector>

#include "concord/onnx/call.hpp"

namespace concord::onnx {

/// The axes of the attribute `axes` or, from `input_since` on, of operand 1; nothing if there are none.
[[nodiscard]] std::optional<Dims> axes_of(const Call& call, std::int64_t input_since);
/// x[start : start + step·count : step] along every axis, with a step of any sign but 0.
[[nodiscard]] Value sliced(const Value& x, const Dims& start, const Dims& step, const Dims& count);
/// x along one axis, of any type.
[[nodiscard]] Value sliced_along(const Value& x, std::size_t axis, std::int64_t start, std::int64_t count,
                                 std::int64_t step = 1);
/// x broadcast to these dimensions, of any type.
[[nodiscard]] Value expanded(const Value& x, const Dims& dims);
/// The axes of x in another order, of any type.
[[nodiscard]] Value transposed(const Value& x, const Dims& order);
/// The host's numbers at the positions that `place` gives for each position of the result.
template <class Place>
[[nodiscard]] HostTensor picked(const HostTensor& source, Dims dims, Place&& place) {
  HostTensor result(source.type, std::move(dims));
  std::size_t next = 0;
  each_position(result.dims, [&](const Dims& position) { result.copy(next++, source, place(position)); });
  return result;
}

}  // namespace concord::onnx
