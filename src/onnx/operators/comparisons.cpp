// Comparisons, logic and conversions of ONNX.
#include <cmath>

#include "concord/core/check.hpp"
#include "concord/onnx/operators/pointwise_call.hpp"
#include "concord/onnx/table.hpp"

namespace concord::onnx {
namespace {

struct Relation {
  const char* label;
  Scalar (*formula)(const Scalar& a, const Scalar& b);
  bool (*numbers)(double a, double b);
  bool (*integers)(std::int64_t a, std::int64_t b);
};

Scalar truth_of(const Scalar& a) { return 1.0F - logical_not(a); }

constexpr Relation kEqual{"equal", [](const Scalar& a, const Scalar& b) { return scalar::equal(a, b); },
                          [](double a, double b) { return a == b; },
                          [](std::int64_t a, std::int64_t b) { return a == b; }};
constexpr Relation kLess{"less", [](const Scalar& a, const Scalar& b) { return scalar::less(a, b); },
                         [](double a, double b) { return a < b; },
                         [](std::int64_t a, std::int64_t b) { return a < b; }};
constexpr Relation kLessOrEqual{
    "less_or_equal", [](const Scalar& a, const Scalar& b) { return scalar::less_equal(a, b); },
    [](double a, double b) { return a <= b; }, [](std::int64_t a, std::int64_t b) { return a <= b; }};
constexpr Relation kGreater{"greater", [](const Scalar& a, const Scalar& b) { return scalar::less(b, a); },
                            [](double a, double b) { return a > b; },
                            [](std::int64_t a, std::int64_t b) { return a > b; }};
constexpr Relation kGreaterOrEqual{
    "greater_or_equal", [](const Scalar& a, const Scalar& b) { return scalar::less_equal(b, a); },
    [](double a, double b) { return a >= b; }, [](std::int64_t a, std::int64_t b) { return a >= b; }};
constexpr Relation kAnd{"and", [](const Scalar& a, const Scalar& b) { return truth_of(a) * truth_of(b); },
                        [](double a, double b) { return a != 0 && b != 0; },
                        [](std::int64_t a, std::int64_t b) { return a != 0 && b != 0; }};
constexpr Relation kOr{"or", [](const Scalar& a, const Scalar& b) { return scalar::max(truth_of(a), truth_of(b)); },
                       [](double a, double b) { return a != 0 || b != 0; },
                       [](std::int64_t a, std::int64_t b) { return a != 0 || b != 0; }};
constexpr Relation kXor{"xor", [](const Scalar& a, const Scalar& b) { return scalar::abs(truth_of(a) - truth_of(b)); },
                        [](double a, double b) { return (a != 0) != (b != 0); },
                        [](std::int64_t a, std::int64_t b) { return (a != 0) != (b != 0); }};

template <const Relation& rule>
void relation(Call& call) {
  align_second_operand(call);
  if (!call.on_host(pointwise_dims(call, {0, 1}))) {
    return set_pointwise(
        call, rule.label, {0, 1}, [](const std::vector<Scalar>& x) { return rule.formula(x[0], x[1]); },
        ElementType::boolean);
  }
  const HostTensor& a = call.host(0);
  const HostTensor& b = call.host(1);
  HostTensor result(ElementType::boolean, broadcast_dims(a.dims, b.dims));
  const auto from_a = broadcast_places(a.dims, result.dims), from_b = broadcast_places(b.dims, result.dims);
  for (std::size_t i = 0; i < from_a.size(); ++i) {
    const bool holds = a.floating() ? rule.numbers(a.number(from_a[i]), b.number(from_b[i]))
                                    : rule.integers(a.integer(from_a[i]), b.integer(from_b[i]));
    result.set(i, std::int64_t{holds});
  }
  call.set(0, std::move(result));
}

void negation(Call& call) {
  if (!call.on_host()) {
    return set_pointwise(
        call, "not", {0}, [](const std::vector<Scalar>& x) { return logical_not(x[0]); }, ElementType::boolean);
  }
  HostTensor result = call.host(0);
  for (std::int64_t& bit : result.whole) bit = bit == 0 ? 1 : 0;
  call.set(0, std::move(result));
}

void is_nan(Call& call) {
  set_pointwise(
      call, "is_nan", {0}, [](const std::vector<Scalar>& x) { return 1.0F - scalar::equal(x[0], x[0]); },
      ElementType::boolean);
}

void is_infinite(Call& call) {
  const bool positive = call.integer("detect_positive", 1) != 0, negative = call.integer("detect_negative", 1) != 0;
  const auto formula = [&](const std::vector<Scalar>& x) {
    Scalar infinite = (1.0F - scalar::is_finite(x[0])) * scalar::equal(x[0], x[0]);
    if (!positive) infinite = infinite * scalar::less(x[0], 0.0F);
    if (!negative) infinite = infinite * scalar::less(0.0F, x[0]);
    return infinite;
  };
  set_pointwise(call, "is_inf", {0}, formula, ElementType::boolean);
}

void where_of(Call& call) {
  const ElementType type = call.type(1);
  if (!call.on_host(pointwise_dims(call, {0, 1, 2}))) {
    return set_pointwise(
        call, "where", {0, 1, 2}, [](const std::vector<Scalar>& x) { return scalar::select(x[0], x[1], x[2]); }, type);
  }
  HostTensor result(type, pointwise_dims(call, {0, 1, 2}));
  const auto from_c = broadcast_places(call.dims(0), result.dims), from_a = broadcast_places(call.dims(1), result.dims),
             from_b = broadcast_places(call.dims(2), result.dims);
  for (std::size_t i = 0; i < from_c.size(); ++i) {
    const bool first = call.host(0).integer(from_c[i]) != 0;
    result.copy(i, call.host(first ? 1 : 2), first ? from_a[i] : from_b[i]);
  }
  call.set(0, std::move(result));
}

// --- conversions

ElementType type_named(const std::string& name) {
  for (int i = 1; i <= static_cast<int>(ElementType::bf16); ++i) {
    const auto type = static_cast<ElementType>(i);
    std::string upper;
    for (const char c : name_of(type)) upper += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    if (upper == name) return type;
  }
  throw FormatError(fmt::format("the type '{}' is unknown", name));
}

// Whether a conversion keeps the low bits alone.
bool wraps(ElementType from, ElementType to) {
  const int bits = narrow_bits(to);
  if (bits == 0 || from == to || from == ElementType::boolean) return false;
  if (narrow_bits(from) == 0 || narrow_bits(from) > bits) return true;
  return narrow_bits(from) == bits || (is_signed(from) && !is_signed(to));
}

void convert(Call& call, ElementType type, bool on_host) {
  const DType target = dtype_of(type);
  if (on_host) {
    const HostTensor& source = call.host(0);
    HostTensor result(type, source.dims);
    for (std::size_t i = 0; i < static_cast<std::size_t>(source.elements()); ++i) {
      if (source.floating()) {
        result.set(i, source.number(i));
      } else {
        result.set(i, source.integer(i));
      }
    }
    return call.set(0, std::move(result));
  }
  const ElementType from = call.type(0);
  if (type == ElementType::boolean && from != ElementType::boolean) {
    return set_pointwise(
        call, "cast", {0}, [](const std::vector<Scalar>& x) { return truth_of(x[0]); }, type);
  }
  if (wraps(from, type)) {
    return set_pointwise(
        call, "cast", {0}, [&](const std::vector<Scalar>& x) { return wrapped_to(truncated(x[0]), type); }, type);
  }
  if (call.is_empty(0)) return call.set_empty(0, type, call.dims(0));
  const Value x = call.value(0);
  call.set(0, x.dtype() == target ? x : cast(x, target), type);
}

void cast_of(Call& call) {
  if (call.opset() < 6) return convert(call, type_named(call.text("to", "")), call.on_host());
  convert(call, static_cast<ElementType>(call.required_integer("to")), call.on_host());
}

std::string check_cast(const NodeDef& node) {
  const Attribute* const to = node.find("to");
  if (to == nullptr || to->type != AttributeType::i) return {};
  try {
    (void)dtype_of(static_cast<ElementType>(to->i));
  } catch (const NotSupported& error) {
    return error.what();
  }
  return {};
}

// Of the second operand the type is known, whatever its numbers are.
void cast_like(Call& call) {
  convert(call, call.type(1), call.on_host() || (call.is_known(0) && call.operand(0)->fixed));
}

}  // namespace

void add_comparisons(Table& table) {
  table.add("Equal", {.run = relation<kEqual>, .host = true});
  table.add("Less", {.run = relation<kLess>, .host = true});
  table.add("LessOrEqual", {.since = 12, .run = relation<kLessOrEqual>, .host = true});
  table.add("Greater", {.run = relation<kGreater>, .host = true});
  table.add("GreaterOrEqual", {.since = 12, .run = relation<kGreaterOrEqual>, .host = true});
  table.add("And", {.run = relation<kAnd>, .host = true});
  table.add("Or", {.run = relation<kOr>, .host = true});
  table.add("Xor", {.run = relation<kXor>, .host = true});
  table.add("Not", {.run = negation, .host = true});
  table.add("IsNaN", {.since = 9, .run = is_nan});
  table.add("IsInf", {.since = 10, .run = is_infinite});
  table.add("Where", {.since = 9, .run = where_of, .host = true});
  table.add("Cast", {.run = cast_of, .host = true, .check = check_cast});
  table.add("CastLike", {.since = 15, .run = cast_like, .host = true});
}

}  // namespace concord::onnx
