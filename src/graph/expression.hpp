// Pointwise expressions: small graphs over scalars. Activations, loss terms, gates and optimizer updates are all
// expressions. ops/pointwise wraps an expression as an operator. The OpenCL backend prints it as kernel text; the CPU
// backend runs it over tiles. Its derivative is symbolic, so a formula is written once.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "concord/core/export.hpp"
#include "concord/graph/scalar_function_list.hpp"

namespace CONCORD_PUBLIC concord {

/// The scalar functions a backend knows. The functions are the rows of scalar_function_list.hpp.
enum class ScalarFunction : std::uint8_t {
  // leaves
  input,       // operand number `index`, converted to float
  constant,    // `value`
  coordinate,  // the element's index along output axis `index` (counted from the innermost: 0 is the last axis)
  // operators
  add,
  subtract,
  multiply,
  divide,
  negate,
  // comparisons: 1 or 0
  less,
  less_equal,
  equal,
  // select(condition, a, b): a where condition != 0
  select,
// functions of formulas.h
#define CONCORD_ENTRY(name, ...) name,
  CONCORD_UNARY_FUNCTIONS(CONCORD_ENTRY) CONCORD_BINARY_FUNCTIONS(CONCORD_ENTRY)
#undef CONCORD_ENTRY
};

/// A scalar formula: a handle to an immutable node. Build formulas from `input(i)`, constants, the operators below and
/// the functions of `scalar::`.
class Scalar {
 public:
  struct Node {
    ScalarFunction function;
    std::vector<Scalar> arguments;
    float value = 0;         // constant
    std::int32_t index = 0;  // input, coordinate
  };

  Scalar(float value);  // NOLINT(google-explicit-constructor): numbers are formulas
  explicit Scalar(std::shared_ptr<const Node> node) : node_(std::move(node)) {}
  [[nodiscard]] const Node& node() const { return *node_; }
  [[nodiscard]] const std::shared_ptr<const Node>& pointer() const { return node_; }

 private:
  std::shared_ptr<const Node> node_;
};

namespace scalar {
[[nodiscard]] Scalar input(int index);
/// The index of the element along an output axis, as a number. Axis 0 is the innermost.
[[nodiscard]] Scalar coordinate(int axis_from_last);
[[nodiscard]] Scalar apply(ScalarFunction function, std::vector<Scalar> arguments);

[[nodiscard]] Scalar less(const Scalar& a, const Scalar& b);
[[nodiscard]] Scalar less_equal(const Scalar& a, const Scalar& b);
[[nodiscard]] Scalar equal(const Scalar& a, const Scalar& b);
[[nodiscard]] Scalar select(const Scalar& condition, const Scalar& a, const Scalar& b);
// exp(a), power(a, b), …: one function for each entry of scalar_function_list.hpp, which describes them.
#define CONCORD_DECLARE(name, ...) [[nodiscard]] Scalar name(const Scalar& a);
CONCORD_UNARY_FUNCTIONS(CONCORD_DECLARE)
#undef CONCORD_DECLARE
#define CONCORD_DECLARE(name, ...) [[nodiscard]] Scalar name(const Scalar& a, const Scalar& b);
CONCORD_BINARY_FUNCTIONS(CONCORD_DECLARE)
#undef CONCORD_DECLARE
[[nodiscard]] inline Scalar min(const Scalar& a, const Scalar& b) { return minimum(a, b); }
[[nodiscard]] inline Scalar max(const Scalar& a, const Scalar& b) { return maximum(a, b); }
}  // namespace scalar

[[nodiscard]] Scalar operator+(const Scalar& a, const Scalar& b);
[[nodiscard]] Scalar operator-(const Scalar& a, const Scalar& b);
[[nodiscard]] Scalar operator*(const Scalar& a, const Scalar& b);
[[nodiscard]] Scalar operator/(const Scalar& a, const Scalar& b);
[[nodiscard]] Scalar operator-(const Scalar& a);

/// ∂formula/∂input(index), simplified: what has a slope of 0 is left out, even where it may be infinite or NaN. At a
/// kink (relu at 0, abs at 0, max at a tie) it has PyTorch's value.
[[nodiscard]] Scalar derivative(const Scalar& formula, int index);

/// Returns `formula` with each subexpression equal to `part` replaced by `by`. A gradient can so use the output of its
/// operator.
[[nodiscard]] Scalar replace(const Scalar& formula, const Scalar& part, const Scalar& by);

/// Returns `formula` with each input(i) replaced by replacements[i].
[[nodiscard]] Scalar substitute(const Scalar& formula, std::span<const Scalar> replacements);

/// One or more formulas over the same inputs, as straight-line code: common subexpressions appear once, constants are
/// folded, and arguments come before their users. What is left out changes no value: x·0 stays, which is NaN where x is
/// infinite or NaN. Backends print or run this code.
class Expression {
 public:
  struct Instruction {
    ScalarFunction function;
    std::int32_t arguments[3] = {-1, -1, -1};  // indices of earlier instructions
    float value = 0;                           // constant
    std::int32_t index = 0;                    // input, coordinate
    friend bool operator==(const Instruction&, const Instruction&) = default;
  };

  Expression() = default;
  /// `inputs` is the number of operands. Each input(i) in the formulas needs i < inputs.
  Expression(std::vector<Scalar> formulas, int inputs);

  [[nodiscard]] int inputs() const { return inputs_; }
  [[nodiscard]] const std::vector<Scalar>& formulas() const { return formulas_; }
  [[nodiscard]] std::span<const Instruction> code() const { return code_; }
  /// results()[k] is the index of the instruction that computes output k.
  [[nodiscard]] std::span<const std::int32_t> results() const { return results_; }
  [[nodiscard]] bool uses_coordinates() const;
  /// Canonical text, such as "t0=in0;t1=0;t2=maximum(t0,t1);out0=t2". Equal text means equal function.
  [[nodiscard]] std::string str() const;
  /// The value of output `k` at one point. It defines the result that every backend must reproduce. Computed in fp32
  /// with the formulas of cl_kernels/shared/formulas.h. `coordinates[a]` is the index along axis a, counted from the
  /// innermost.
  [[nodiscard]] float evaluate(std::size_t k, std::span<const float> inputs,
                               std::span<const std::int64_t> coordinates = {}) const;

 private:
  std::vector<Scalar> formulas_;
  std::vector<Instruction> code_;
  std::vector<std::int32_t> results_;
  int inputs_ = 0;
};

/// The table entry of a scalar function. The name is also that of `concord_<name>` in formulas.h.
struct ScalarFunctionInfo {
  ScalarFunction function;
  std::string_view name;
  int arity;
  float test_low, test_high;  // arguments for which accuracy and derivative are tested
};
[[nodiscard]] const ScalarFunctionInfo& info_of(ScalarFunction function);
[[nodiscard]] std::span<const ScalarFunctionInfo> scalar_functions();

}  // namespace concord
