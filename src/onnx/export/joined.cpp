// What ONNX writes as one operator and a traced graph as several: bias of convolutions and products, scale and shift of
// normalisations. The parts that nothing else reads are left out of the file (GraphWriter::finish).
#include <optional>

#include "concord/onnx/export/rules.hpp"
#include "concord/ops/conv.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/matmul.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/row_norm.hpp"

namespace concord::onnx {
namespace {

template <class Op>
const Op* op_of(const Value& value) {
  return dynamic_cast<const Op*>(value.node().op.get());
}

/// Whether this is the formula `wanted` of f32 values.
bool is_formula(const Value& value, const Scalar& wanted, int inputs) {
  const auto* op = op_of<ops::Pointwise>(value);
  return op != nullptr && value.dtype() == DType::f32 && op->expression().inputs() == inputs &&
         op->expression().str() == Expression({wanted}, inputs).str();
}
bool is_sum(const Value& value) { return is_formula(value, scalar::input(0) + scalar::input(1), 2); }
bool is_product(const Value& value) { return is_formula(value, scalar::input(0) * scalar::input(1), 2); }

/// The value (C) of which `value` is (C, 1, …) with `after` ones, or an empty value.
Value by_channel(const Value& value, std::size_t after) {
  const Value plain = op_of<ops::Reshape>(value) != nullptr ? value.node().inputs[0] : value;
  if (plain.shape().rank() != 1 || value.shape().rank() != after + 1) return {};
  return value.shape().dims()[0] == plain.shape().dims()[0] ? plain : Value{};
}

/// The two orders of the operands of a sum or a product.
template <class Try>
bool either_order(const Node& node, const Try& attempt) {
  return attempt(node.inputs[0], node.inputs[1]) || attempt(node.inputs[1], node.inputs[0]);
}

/// (x + factors[0])·factors[1] (+ bias), with −mean and weight/√(variance + ε) as factors: nn::BatchNorm by running
/// statistics.
struct RunningNorm {
  Value x, factors;
  float epsilon = 0;
};

std::optional<float> epsilon_of(const Value& factors) {
  const auto* op = op_of<ops::Pointwise>(factors);
  if (op == nullptr || op->expression().results().size() != 2) return std::nullopt;
  const Expression& given = op->expression();
  for (const Expression::Instruction& step : given.code()) {
    if (step.function != ScalarFunction::constant) continue;
    Scalar factor = scalar::rsqrt(scalar::input(1) + step.value);
    if (given.inputs() == 3) factor = scalar::input(2) * factor;
    if (Expression({-scalar::input(0), factor}, given.inputs()).str() == given.str()) return step.value;
  }
  return std::nullopt;
}

std::optional<RunningNorm> running_norm(const Value& value) {
  if (!is_product(value)) return std::nullopt;
  const Value centred = value.node().inputs[0], scale = value.node().inputs[1];
  if (!is_sum(centred) || centred.shape().rank() < 2) return std::nullopt;
  const Value x = centred.node().inputs[0], shift = centred.node().inputs[1];
  const std::size_t after = x.shape().rank() - 2;
  const Value a = by_channel(shift, after), b = by_channel(scale, after);
  if (!a || !b || a.node_id() != b.node_id() || a.output() != 0 || b.output() != 1) return std::nullopt;
  const auto epsilon = epsilon_of(a);
  if (!epsilon || x.shape()[1] != a.shape()[0]) return std::nullopt;
  return RunningNorm{x, a, *epsilon};
}

bool write_batch_norm(NodeExport& x, const RunningNorm& norm, const Value& bias) {
  const std::vector<Value>& factors = norm.factors.node().inputs;
  const Shape channels = factors[0].shape();
  const auto constant = [&](float value) {
    const std::vector<float> values(static_cast<std::size_t>(channels.elements()), value);
    return x.writer().tensor(channels, values);
  };
  const std::string weight = factors.size() == 3 ? x.name_of(factors[2]) : constant(1);
  const std::string shift = bias ? x.name_of(bias) : constant(0);
  x.bind(0,
         x.add("BatchNormalization", {x.name_of(norm.x), weight, shift, x.name_of(factors[0]), x.name_of(factors[1])},
               {real("epsilon", norm.epsilon)}));
  return true;
}

bool try_batch_norm(NodeExport& x, const Value& value) {
  if (is_sum(value)) {
    const auto with_bias = [&](const Value& product, const Value& other) {
      const auto norm = running_norm(product);
      if (!norm || x.uses_of(product) != 1) return false;
      const Value bias = by_channel(other, value.shape().rank() - 2);
      return bias && bias.shape()[0] == value.shape()[1] && write_batch_norm(x, *norm, bias);
    };
    return either_order(value.node(), with_bias);
  }
  const auto norm = running_norm(value);
  // With a weight there is a bias, whose sum comes next and is written as this.
  return norm && norm->factors.node().inputs.size() == 2 && write_batch_norm(x, *norm, {});
}

bool try_layer_norm(NodeExport& x, const Value& value) {
  if (x.opset() < 17) return false;
  const auto scaled = [&](const Value& product, const Value& bias) {
    return is_product(product) && either_order(product.node(), [&](const Value& rows, const Value& weight) {
             const auto* norm = op_of<ops::RowNorm>(rows);
             if (norm == nullptr || !norm->centred() || rows.output() != 0 || x.uses_of(rows) != 1) return false;
             const Node& node = rows.node();
             for (std::int32_t k = 1; k < 3; ++k) {
               if (x.uses_of(Value(&rows.graph(), rows.node_id(), k)) != 0) return false;
             }
             const Value src = node.inputs[0];
             const auto row = src.shape().dims().subspan(norm->axis());
             const Shape expected(std::vector<std::int64_t>(row.begin(), row.end()));
             if (weight.shape() != expected || (bias && bias.shape() != expected)) return false;
             x.bind(0,
                    x.add("LayerNormalization",
                          {x.name_of(src), x.name_of(weight), bias ? x.name_of(bias) : std::string()},
                          {whole("axis", static_cast<std::int64_t>(norm->axis())), real("epsilon", norm->epsilon())}));
             return true;
           });
  };
  if (is_sum(value)) {
    return either_order(value.node(), [&](const Value& product, const Value& bias) {
      return x.uses_of(product) == 1 && scaled(product, bias);
    });
  }
  return scaled(value, {});
}

bool try_conv_bias(NodeExport& x, const Value& product, const Value& other) {
  const bool is_transposed = op_of<ops::ConvBackwardData>(product) != nullptr;
  if ((!is_transposed && op_of<ops::Conv>(product) == nullptr) || x.uses_of(product) != 1) return false;
  const Value bias = by_channel(other, product.shape().rank() - 2);
  if (!bias || bias.shape()[0] != product.shape()[1]) return false;
  const Node& conv = product.node();
  x.bind(0, is_transposed ? write_conv_transpose(x, conv, x.name_of(bias)) : write_conv(x, conv, x.name_of(bias)));
  return true;
}

bool try_gemm(NodeExport& x, const Value& product, const Value& bias) {
  const auto* matmul = op_of<ops::Matmul>(product);
  if (matmul == nullptr || x.uses_of(product) != 1 || product.shape().rank() != 2 || bias.shape().rank() != 1) {
    return false;
  }
  const std::vector<Value>& inputs = product.node().inputs;
  if (inputs[0].shape().rank() != 2 || inputs[1].shape().rank() != 2 || bias.shape()[0] != product.shape()[1]) {
    return false;
  }
  x.bind(0, x.add("Gemm", {x.name_of(inputs[0]), x.name_of(inputs[1]), x.name_of(bias)},
                  {whole("transA", matmul->transpose_a() ? 1 : 0), whole("transB", matmul->transpose_b() ? 1 : 0)}));
  return true;
}

}  // namespace

bool write_joined(NodeExport& x) {
  if (x.node().outputs.size() != 1) return false;
  const Value value = x.output(0);
  if (!is_sum(value) && !is_product(value)) return false;
  if (value.shape().rank() >= 2 && try_batch_norm(x, value)) return true;
  if (try_layer_norm(x, value)) return true;
  return is_sum(value) && either_order(value.node(), [&](const Value& product, const Value& bias) {
           return product.shape() == value.shape() && (try_conv_bias(x, product, bias) || try_gemm(x, product, bias));
         });
}

}  // namespace concord::onnx
