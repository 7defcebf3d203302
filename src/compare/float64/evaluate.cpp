// The families asked one after the other.
#include "concord/compare/float64/evaluate.hpp"

#include <algorithm>
#include <array>

#include "concord/compare/float64/families.hpp"

namespace concord::float64 {
namespace {

bool is_readable(const Tensor& tensor) {
  return tensor.dtype() == DType::f32 || tensor.dtype() == DType::i32 || tensor.dtype() == DType::u8;
}

template <class T>
Values converted(const Tensor& tensor) {
  const auto values = tensor.values<T>();
  return {values.begin(), values.end()};
}

}  // namespace

Values doubles(const Tensor& tensor) {
  if (tensor.dtype() == DType::i32) return converted<std::int32_t>(tensor);
  return tensor.dtype() == DType::u8 ? converted<std::uint8_t>(tensor) : converted<float>(tensor);
}

Values zeros(const Tensor& result) { return Values(static_cast<std::size_t>(result.elements())); }

Results evaluate(const ReplayedNode& node) {
  if (!std::ranges::all_of(node.inputs, is_readable)) return {};
  constexpr std::array kFamilies{pointwise, fused,  copy,  matmul,    conv,      pool,   normalise, softmax,
                                 reduce,    gather, along, attention, recurrent, random, ctc};
  for (const auto family : kFamilies) {
    if (Results results = family(node)) return results;
  }
  return {};
}

}  // namespace concord::float64
