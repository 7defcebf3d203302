// Reductions, cumulative sums, the largest values, and the check for values that are not finite.
#include "concord/ops/reduce.hpp"

#include "concord/onnx/export/rules.hpp"
#include "concord/ops/all_finite.hpp"
#include "concord/ops/scan.hpp"
#include "concord/ops/top_k.hpp"

namespace concord::onnx {
namespace {

void write_reduce(NodeExport& x) {
  const auto& op = x.op<ops::Reduce>();
  if (op.kind() == ops::ReduceKind::argmax) {
    const std::string index =
        x.add("ArgMax", {x.in(0)}, {whole("axis", static_cast<std::int64_t>(op.axes()[0])), whole("keepdims", 1)});
    x.bind(0, x.cast(index, ElementType::i32));
    return;
  }
  static const std::map<std::string_view, const char*> kOperators{{"reduce_sum", "ReduceSum"},
                                                                  {"reduce_max", "ReduceMax"},
                                                                  {"reduce_min", "ReduceMin"},
                                                                  {"reduce_norm", "ReduceL2"},
                                                                  {"reduce_prod", "ReduceProd"}};
  const auto found = kOperators.find(op.name());
  if (found == kOperators.end()) NodeExport::refuse("ONNX has no such reduction");
  x.bind(0, x.reduce(found->second, x.in(0), {op.axes().begin(), op.axes().end()}));
}

void write_top_k(NodeExport& x) {
  const auto& op = x.op<ops::TopK>();
  const Names results =
      x.add_many("TopK", {x.in(0), x.writer().integers({op.k()})},
                 {whole("axis", static_cast<std::int64_t>(op.axis())), whole("largest", op.largest() ? 1 : 0)}, 2);
  if (x.is_used(1)) x.bind(1, x.cast(results[1], ElementType::i32));
  x.bind(0, results[0]);
}

/// A number times 0 is 0 if it is finite, else NaN, and so is the sum.
void write_all_finite(NodeExport& x) {
  std::string total;
  for (std::size_t i = 0; i < x.node().inputs.size(); ++i) {
    const Sizes elements{{-1, false}};
    const std::string zeros = x.multiply(x.reshape(x.in(i), x.in_sizes(i), elements), 0.0F);
    const std::string sum = x.add("ReduceSum", {zeros, x.writer().integers({0})}, {whole("keepdims", 0)});
    total = total.empty() ? sum : x.add_to(total, sum);
  }
  x.bind(0, x.cast(x.add("Equal", {total, x.writer().number(0)}), ElementType::f32));
}

}  // namespace

void add_reduce_rules(Rules& rules) {
  rules[typeid(ops::Reduce)] = write_reduce;
  rules[typeid(ops::TopK)] = write_top_k;
  rules[typeid(ops::AllFinite)] = write_all_finite;
  rules[typeid(ops::CumSum)] = [](NodeExport& x) {
    const auto& op = x.op<ops::CumSum>();
    x.bind(0, x.add("CumSum", {x.in(0), x.writer().integer(static_cast<std::int64_t>(op.axis()))},
                    {whole("exclusive", op.exclusive() ? 1 : 0), whole("reverse", op.reverse() ? 1 : 0)}));
  };
}

}  // namespace concord::onnx
