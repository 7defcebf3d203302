// Arithmetic of ONNX, elementwise: one and two operands and sums of several.
#include <algorithm>
#include <cmath>

#include "concord/core/check.hpp"
#include "concord/onnx/operators/pointwise_call.hpp"
#include "concord/onnx/table.hpp"

namespace concord::onnx {
namespace {

// --- two operands

struct BinaryRule {
  const char* label;
  Scalar (*number)(const Scalar& a, const Scalar& b);  // of floating operands
  Scalar (*whole)(const Scalar& a, const Scalar& b);   // of integers; a fraction is cut off
  double (*host_number)(double a, double b);
  std::int64_t (*host_whole)(std::int64_t a, std::int64_t b);
  // Of integers of 16 bits and less, below 2^24 with the right low bits; null: `whole` is.
  Scalar (*narrow)(const Scalar& a, const Scalar& b) = nullptr;
};

std::int64_t wrapped(std::uint64_t bits) { return static_cast<std::int64_t>(bits); }
std::uint64_t bits_of_whole(std::int64_t value) { return static_cast<std::uint64_t>(value); }

std::int64_t host_quotient(std::int64_t a, std::int64_t b) {
  CONCORD_CHECK(b != 0, ArgumentError, "a division of integers by 0");
  return b == -1 ? wrapped(0 - bits_of_whole(a)) : a / b;
}

std::int64_t host_remainder(std::int64_t a, std::int64_t b) { return b == -1 ? 0 : a - host_quotient(a, b) * b; }

// With the sign of the divisor, as in Python.
std::int64_t host_modulo(std::int64_t a, std::int64_t b) {
  const std::int64_t rest = host_remainder(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

// A fraction is cut off; beyond 64 bits it wraps, as products do.
std::int64_t host_whole_power(std::int64_t a, std::int64_t b) {
  CONCORD_CHECK(a != 0 || b >= 0, ArgumentError, "a negative power of the integer 0");
  if (b < 0 && a != 1 && a != -1) return 0;
  std::uint64_t power = 1, square = bits_of_whole(a);
  for (std::uint64_t left = bits_of_whole(b < 0 ? b & 1 : b); left != 0; left >>= 1U) {
    if ((left & 1U) != 0) power *= square;
    square *= square;
  }
  return wrapped(power);
}

// As fmod in C for quotients below 2^24, beyond which it is 0: a long division, each step of which is exact.
Scalar remainder_of(const Scalar& a, const Scalar& b) {
  constexpr int kSteps = 24;
  const Scalar size = scalar::abs(b);
  Scalar rest = scalar::abs(a);
  for (int k = kSteps - 1; k >= 0; --k) {
    const Scalar part = size * std::ldexp(1.0F, k);
    rest = scalar::select(scalar::less_equal(part, rest), rest - part, rest);
  }
  const Scalar undefined = (a - a) / b;  // NaN for an infinite a and for b = 0
  return scalar::select(scalar::less(rest, size), scalar::select(scalar::less(a, 0.0F), -rest, rest), undefined);
}

// a·b below 2^24 with the same low 16 bits, of numbers of 16 bits: the high byte of a counts by its product's low byte.
Scalar narrow_product(const Scalar& a, const Scalar& b) {
  constexpr float kByte = 256;
  const Scalar high = scalar::floor(a * (1 / kByte)), low = a - high * kByte;
  return wrapped_to(high * b, ElementType::u8) * kByte + low * b;
}

Scalar whole_remainder(const Scalar& a, const Scalar& b) { return a - b * whole_quotient(a, b); }
Scalar whole_modulo(const Scalar& a, const Scalar& b) {
  const Scalar rest = whole_remainder(a, b);
  return scalar::select(scalar::less(rest * b, 0.0F), rest + b, rest);
}

constexpr BinaryRule kAdd{"add", [](const Scalar& a, const Scalar& b) { return a + b; },
                          [](const Scalar& a, const Scalar& b) { return a + b; },
                          [](double a, double b) { return a + b; },
                          [](std::int64_t a, std::int64_t b) { return wrapped(bits_of_whole(a) + bits_of_whole(b)); }};
constexpr BinaryRule kSubtract{
    "subtract", [](const Scalar& a, const Scalar& b) { return a - b; },
    [](const Scalar& a, const Scalar& b) { return a - b; }, [](double a, double b) { return a - b; },
    [](std::int64_t a, std::int64_t b) { return wrapped(bits_of_whole(a) - bits_of_whole(b)); }};
constexpr BinaryRule kMultiply{
    "multiply",
    [](const Scalar& a, const Scalar& b) { return a * b; },
    [](const Scalar& a, const Scalar& b) { return a * b; },
    [](double a, double b) { return a * b; },
    [](std::int64_t a, std::int64_t b) { return wrapped(bits_of_whole(a) * bits_of_whole(b)); },
    narrow_product};
constexpr BinaryRule kDivide{"divide", [](const Scalar& a, const Scalar& b) { return a / b; }, whole_quotient,
                             [](double a, double b) { return a / b; }, host_quotient};
constexpr BinaryRule kRemainder{"remainder", remainder_of, whole_remainder,
                                [](double a, double b) { return std::fmod(a, b); }, host_remainder};
constexpr BinaryRule kModulo{"modulo", remainder_of, whole_modulo, [](double a, double b) { return std::fmod(a, b); },
                             host_modulo};

void run_binary(Call& call, const BinaryRule& rule) {
  align_second_operand(call);
  const ElementType type = call.type(0);
  const bool floating = is_floating(type);
  if (!call.on_host(pointwise_dims(call, {0, 1}))) {
    const auto formula = [&](const std::vector<Scalar>& x) {
      if (floating) return rule.number(x[0], x[1]);
      if (narrow_bits(type) == 0) return rule.whole(x[0], x[1]);
      return wrapped_to((rule.narrow != nullptr ? rule.narrow : rule.whole)(x[0], x[1]), type);
    };
    return set_pointwise(call, rule.label, {0, 1}, formula, type);
  }
  const HostTensor& a = call.host(0);
  const HostTensor& b = call.host(1);
  HostTensor result(type, broadcast_dims(a.dims, b.dims));
  const auto from_a = broadcast_places(a.dims, result.dims), from_b = broadcast_places(b.dims, result.dims);
  for (std::size_t i = 0; i < from_a.size(); ++i) {
    if (floating || b.floating()) {
      result.set(i, rule.host_number(a.number(from_a[i]), b.number(from_b[i])));
    } else {
      result.set(i, rule.host_whole(a.integer(from_a[i]), b.integer(from_b[i])));
    }
  }
  call.set(0, std::move(result));
}

template <const BinaryRule& rule>
void binary(Call& call) {
  run_binary(call, rule);
}

void mod(Call& call) { run_binary(call, call.integer("fmod", 0) != 0 ? kRemainder : kModulo); }

// Of any sign of the base: a device's power may know positive ones alone.
Scalar any_power(const Scalar& a, const Scalar& b) {
  const Scalar size = scalar::power(scalar::abs(a), b);
  const Scalar is_odd = scalar::equal(b - 2.0F * scalar::floor(0.5F * b), 1.0F);
  const Scalar is_whole = scalar::equal(b, scalar::floor(b));
  return scalar::select(scalar::less(a, 0.0F) * is_whole, scalar::select(is_odd, -size, size), scalar::power(a, b));
}

// What a fraction of an integer power leaves. A device's power may be a little off the whole number that it should be.
Scalar cut_off_power(const Scalar& a) {
  constexpr float kOff = 0x1p-19F;
  const Scalar nearest = scalar::rint(a);
  return scalar::select(scalar::less_equal(scalar::abs(a - nearest), kOff * scalar::abs(a)), nearest, truncated(a));
}

void power(Call& call) {
  align_second_operand(call);
  if (call.on_host(pointwise_dims(call, {0, 1}))) {
    static constexpr BinaryRule kPower{"power", nullptr, nullptr, [](double a, double b) { return std::pow(a, b); },
                                       host_whole_power};
    return run_binary(call, kPower);
  }
  const ElementType type = call.type(0);
  const bool is_whole = !is_floating(type);
  const auto of_type = [&](const Scalar& x) { return is_whole ? cut_off_power(x) : x; };
  if (call.is_constant_number(1)) {
    // A constant whole exponent becomes products (Expression).
    const double exponent = call.number(1);
    const auto formula = [&](const std::vector<Scalar>& x) {
      return of_type(scalar::power(x[0], static_cast<float>(exponent)));
    };
    constexpr double kMost = 8;
    if (exponent == std::floor(exponent) && std::abs(exponent) <= kMost) {
      if (pointwise_dims(call, {0, 1}) == call.dims(0)) return set_pointwise(call, "power", {0}, formula, type);
      return set_pointwise(call, "power", {0, 1}, formula, type);
    }
    if (exponent == 0.5) {
      return set_pointwise(
          call, "sqrt", {0, 1},
          [&](const std::vector<Scalar>& x) { return is_whole ? whole_root(x[0]) : scalar::sqrt(x[0]); }, type);
    }
  }
  set_pointwise(
      call, "power", {0, 1}, [&](const std::vector<Scalar>& x) { return of_type(any_power(x[0], x[1])); }, type);
}

// --- one operand

struct UnaryRule {
  const char* label;
  Scalar (*formula)(const Scalar& a);
  double (*host)(double a);
};

constexpr UnaryRule kAbs{"abs", [](const Scalar& a) { return scalar::abs(a); }, [](double a) { return std::abs(a); }};
constexpr UnaryRule kNegate{"negate", [](const Scalar& a) { return -a; }, [](double a) { return -a; }};
constexpr UnaryRule kSign{"sign", sign_of, [](double a) { return static_cast<double>((a > 0) - (a < 0)); }};
constexpr UnaryRule kFloor{"floor", [](const Scalar& a) { return scalar::floor(a); },
                           [](double a) { return std::floor(a); }};
constexpr UnaryRule kCeil{"ceil", [](const Scalar& a) { return -scalar::floor(-a); },
                          [](double a) { return std::ceil(a); }};
constexpr UnaryRule kRound{"round", [](const Scalar& a) { return scalar::rint(a); },
                           [](double a) { return std::nearbyint(a); }};
constexpr UnaryRule kSqrt{"sqrt", [](const Scalar& a) { return scalar::sqrt(a); },
                          [](double a) { return std::sqrt(a); }};
constexpr UnaryRule kExp{"exp", [](const Scalar& a) { return scalar::exp(a); }, [](double a) { return std::exp(a); }};
constexpr UnaryRule kLog{"log", [](const Scalar& a) { return scalar::log(a); }, [](double a) { return std::log(a); }};
constexpr UnaryRule kReciprocal{"reciprocal", [](const Scalar& a) { return 1.0F / a; }, [](double a) { return 1 / a; }};

template <const UnaryRule& rule>
void unary(Call& call) {
  const ElementType type = call.type(0);
  if (!call.on_host()) {
    const auto formula = [&](const std::vector<Scalar>& x) {
      return narrow_bits(type) == 0 ? rule.formula(x[0]) : wrapped_to(rule.formula(x[0]), type);
    };
    return set_pointwise(call, rule.label, {0}, formula, type);
  }
  HostTensor result = call.host(0);
  for (std::size_t i = 0; i < static_cast<std::size_t>(result.elements()); ++i)
    result.set(i, rule.host(result.number(i)));
  call.set(0, std::move(result));
}

// --- several operands

struct VariadicRule {
  const char* label;
  Scalar (*join)(const Scalar& a, const Scalar& b);
  double (*host)(double a, double b);
};

constexpr VariadicRule kSum{"sum", [](const Scalar& a, const Scalar& b) { return a + b; },
                            [](double a, double b) { return a + b; }};
constexpr VariadicRule kLargest{"maximum", [](const Scalar& a, const Scalar& b) { return scalar::max(a, b); },
                                [](double a, double b) { return std::max(a, b); }};
constexpr VariadicRule kLeast{"minimum", [](const Scalar& a, const Scalar& b) { return scalar::min(a, b); },
                              [](double a, double b) { return std::min(a, b); }};

void run_variadic(Call& call, const VariadicRule& rule, double factor) {
  CONCORD_CHECK(call.inputs() > 0, FormatError, "it has no input");
  std::vector<std::size_t> all(call.inputs());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
  if (call.on_host(pointwise_dims(call, all))) {
    HostTensor result(call.type(0), pointwise_dims(call, all));
    for (const std::size_t k : all) {
      const auto places = broadcast_places(call.dims(k), result.dims);
      for (std::size_t i = 0; i < places.size(); ++i) {
        const double next = call.host(k).number(places[i]);
        result.set(i, k == 0 ? next : rule.host(result.number(i), next));
      }
    }
    for (std::size_t i = 0; factor != 1 && i < static_cast<std::size_t>(result.elements()); ++i) {
      result.set(i, result.number(i) * factor);
    }
    return call.set(0, std::move(result));
  }
  const auto formula = [&](const std::vector<Scalar>& x) {
    Scalar joined = x[0];
    for (std::size_t i = 1; i < x.size(); ++i) joined = rule.join(joined, x[i]);
    return factor == 1 ? joined : joined * static_cast<float>(factor);
  };
  set_pointwise(call, rule.label, all, formula, call.type(0));
}

template <const VariadicRule& rule>
void variadic(Call& call) {
  run_variadic(call, rule, 1);
}

void mean_of_operands(Call& call) { run_variadic(call, kSum, 1.0 / static_cast<double>(call.inputs())); }

}  // namespace

void add_arithmetic(Table& table) {
  table.add("Add", {.run = binary<kAdd>, .host = true});
  table.add("Sub", {.run = binary<kSubtract>, .host = true});
  table.add("Mul", {.run = binary<kMultiply>, .host = true});
  table.add("Div", {.run = binary<kDivide>, .host = true});
  table.add("Mod", {.since = 10, .run = mod, .host = true});
  table.add("Pow", {.run = power, .host = true});
  table.add("Abs", {.run = unary<kAbs>, .host = true});
  table.add("Neg", {.run = unary<kNegate>, .host = true});
  table.add("Sign", {.since = 9, .run = unary<kSign>, .host = true});
  table.add("Floor", {.run = unary<kFloor>, .host = true});
  table.add("Ceil", {.run = unary<kCeil>, .host = true});
  table.add("Round", {.since = 11, .run = unary<kRound>, .host = true});
  table.add("Sqrt", {.run = unary<kSqrt>, .host = true});
  table.add("Exp", {.run = unary<kExp>, .host = true});
  table.add("Log", {.run = unary<kLog>, .host = true});
  table.add("Reciprocal", {.run = unary<kReciprocal>, .host = true});
  table.add("Sum", {.run = variadic<kSum>, .host = true});
  table.add("Max", {.run = variadic<kLargest>, .host = true});
  table.add("Min", {.run = variadic<kLeast>, .host = true});
  table.add("Mean", {.run = mean_of_operands, .host = true});
}

}  // namespace concord::onnx
