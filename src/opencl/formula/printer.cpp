// Expressions as OpenCL C.
#include "concord/opencl/formula/printer.hpp"

#include <cmath>

#include "concord/core/check.hpp"
#include "concord/core/text.hpp"
#include "concord/opencl/launch/strides.hpp"

namespace concord::opencl {
namespace {

std::string number_text(float value) {
  if (std::isnan(value)) return "NAN";
  if (std::isinf(value)) return value > 0 ? "INFINITY" : "(-INFINITY)";
  const std::string digits = hexadecimal(value) + "f";
  return std::signbit(value) ? "(" + digits + ")" : digits;
}

std::string name_of(std::int32_t instruction) { return fmt::format("t{}", instruction); }

std::string instruction_text(const Expression::Instruction& instruction, std::span<const std::string> inputs,
                             std::span<const std::string> coordinates) {
  const std::string a = name_of(instruction.arguments[0]), b = name_of(instruction.arguments[1]),
                    c = name_of(instruction.arguments[2]);
  const auto index = static_cast<std::size_t>(instruction.index);
  switch (instruction.function) {
    case ScalarFunction::input: return inputs[index];
    case ScalarFunction::constant: return number_text(instruction.value);
    case ScalarFunction::coordinate: return fmt::format("(float)({})", coordinates[index]);
    case ScalarFunction::add: return a + " + " + b;
    case ScalarFunction::subtract: return a + " - " + b;
    case ScalarFunction::multiply: return fmt::format("concord_times({}, {})", a, b);
    case ScalarFunction::divide: return a + " / " + b;
    case ScalarFunction::negate: return "-" + a;
    case ScalarFunction::less: return fmt::format("{} < {} ? 1.0f : 0.0f", a, b);
    case ScalarFunction::less_equal: return fmt::format("{} <= {} ? 1.0f : 0.0f", a, b);
    case ScalarFunction::equal: return fmt::format("{} == {} ? 1.0f : 0.0f", a, b);
    case ScalarFunction::select: return fmt::format("{} != 0.0f ? {} : {}", a, b, c);
    default: break;
  }
  const ScalarFunctionInfo& info = info_of(instruction.function);
  return fmt::format("concord_{}({}{})", info.name, a, info.arity > 1 ? ", " + b : "");
}

}  // namespace

std::string print_statements(const Expression& expression, std::span<const std::string> inputs,
                             std::span<const std::string> coordinates) {
  std::string out;
  for (std::size_t i = 0; i < expression.code().size(); ++i) {
    out += fmt::format("  const float {} = {};\n", name_of(static_cast<std::int32_t>(i)),
                       instruction_text(expression.code()[i], inputs, coordinates));
  }
  return out;
}

std::string result_name(const Expression& expression, std::size_t k) { return name_of(expression.results()[k]); }

std::string cl_type(DType type) {
  switch (type) {
    case DType::f32: return "float";
    case DType::f16: return "half";
    case DType::i32: return "int";
    case DType::u8: return "uchar";
    case DType::bf16: break;
  }
  throw NotSupported(fmt::format("OpenCL kernels have no element type {}", concord::name_of(type)));
}

std::string cl_load(DType type, const std::string& pointer, const std::string& index) {
  if (type == DType::f16) return fmt::format("vload_half({}, {})", index, pointer);
  return fmt::format("{}{}[{}]", type == DType::f32 ? "" : "(float)", pointer, index);
}

std::string cl_store(DType type, const std::string& pointer, const std::string& index, const std::string& value) {
  switch (type) {
    case DType::f16: return fmt::format("vstore_half({}, {}, {});", value, index, pointer);
    // What the conversions make of NaN is left to the device.
    case DType::i32:
      return fmt::format("{0}[{1}] = {2} == {2} ? convert_int_sat({2}) : INT_MIN;", pointer, index, value);
    case DType::u8: return fmt::format("{0}[{1}] = {2} == {2} ? convert_uchar_sat({2}) : 0;", pointer, index, value);
    default: return fmt::format("{}[{}] = {};", pointer, index, value);
  }
}

}  // namespace concord::opencl
