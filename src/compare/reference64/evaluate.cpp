// Asks one family after the other.
#include "concord/compare/reference64/evaluate.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "concord/compare/reference64/families.hpp"
#include "concord/ops/pool.hpp"
#include "concord/ops/reduce.hpp"
#include "concord/ops/top_k.hpp"

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

bool finds_places(const Operator& op) {
  const auto* reduce = dynamic_cast<const ops::Reduce*>(&op);
  return (reduce != nullptr && reduce->kind() == ops::ReduceKind::argmax) ||
         dynamic_cast<const ops::MaxPool*>(&op) != nullptr || dynamic_cast<const ops::TopK*>(&op) != nullptr;
}

Results by_family(const ReplayedNode& node) {
  constexpr std::array kFamilies{pointwise, fused,  prologued, copy,      matmul,    conv,   pool, normalise, softmax,
                                 reduce,    gather, along,     attention, recurrent, random, ctc,  all_finite};
  for (const auto family : kFamilies) {
    if (Results results = family(node)) return results;
  }
  return {};
}

}  // namespace

Values doubles(const Tensor& tensor) {
  if (tensor.dtype() == DType::i32) return converted<std::int32_t>(tensor);
  return tensor.dtype() == DType::u8 ? converted<std::uint8_t>(tensor) : converted<float>(tensor);
}

Values zeros(const Tensor& result) { return Values(static_cast<std::size_t>(result.elements())); }

bool holds_subnormals(const Values& values) {
  return std::ranges::any_of(values, [](double x) { return x != 0 && std::abs(x) < 0x1p-126; });
}

Results evaluate(const ReplayedNode& node) {
  if (!std::ranges::all_of(node.inputs, is_readable)) return {};
  Results results = by_family(node);
  // Formulas with integers round at intermediate steps; a reference in double precision does not.
  for (std::size_t k = 0; results && k < results->size(); ++k) {
    if (node.results[k].dtype() != DType::f32 && !finds_places(*node.op)) (*results)[k].clear();
  }
  return results;
}

std::vector<Tensor> right_results(const ReplayedNode& node, const std::vector<Values>& exact) {
  std::vector<Tensor> results = node.results;
  for (std::size_t k = 0; k < results.size(); ++k) {
    if (exact[k].empty() || results[k].dtype() != DType::f32) continue;
    results[k] = Tensor(results[k].spec());
    std::ranges::transform(exact[k], results[k].values<float>().begin(),
                           [](double value) { return static_cast<float>(value); });
  }
  return results;
}

}  // namespace concord::float64
