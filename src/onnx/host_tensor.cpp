// HostTensor: see host_tensor.hpp.
#include "concord/onnx/host_tensor.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "concord/core/check.hpp"
#include "concord/core/fp16.hpp"
#include "concord/core/log.hpp"

namespace concord::onnx {
namespace {

constexpr std::int64_t kMostElements = std::int64_t{1} << 32;  // of all that is known

void require_sizes(const Dims& dims) {
  CONCORD_CHECK(has_at_most(dims, kMostElements), ShapeError, "[{}] has a negative size or too many elements",
                fmt::join(dims, ", "));
}

std::uint64_t bits_at(std::span<const std::byte> data, std::size_t bytes, std::size_t index) {
  std::uint64_t bits = 0;
  for (std::size_t i = bytes; i-- > 0;) bits = bits << 8U | std::to_integer<std::uint64_t>(data[bytes * index + i]);
  return bits;
}

double float_at(const TensorProto& tensor, std::size_t index) {
  const std::uint64_t bits = bits_at(tensor.data.data, bits_of(tensor.type) / 8, index);
  switch (tensor.type) {
    case ElementType::f64: return std::bit_cast<double>(bits);
    case ElementType::f32: return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    case ElementType::f16: return Fp16{static_cast<std::uint16_t>(bits)};
    default: return std::bit_cast<float>(static_cast<std::uint32_t>(bits << 16U));  // bf16
  }
}

std::int64_t integer_at(const TensorProto& tensor, std::size_t index) {
  const std::size_t bits = bits_of(tensor.type);
  if (bits == 4) {
    const auto pair = std::to_integer<std::uint32_t>(tensor.data.data[index / 2]);
    const std::uint32_t low = index % 2 == 0 ? pair & 15U : pair >> 4U;
    return tensor.type == ElementType::i4 && low >= 8 ? static_cast<std::int64_t>(low) - 16 : low;
  }
  const std::uint64_t raw = bits_at(tensor.data.data, bits / 8, index);
  switch (tensor.type) {
    case ElementType::i8: return static_cast<std::int8_t>(raw);
    case ElementType::i16: return static_cast<std::int16_t>(raw);
    case ElementType::i32: return static_cast<std::int32_t>(raw);
    case ElementType::boolean: return raw != 0 ? 1 : 0;
    default: return static_cast<std::int64_t>(raw);
  }
}

}  // namespace

bool is_floating(ElementType type) {
  return type == ElementType::f32 || type == ElementType::f64 || type == ElementType::f16 || type == ElementType::bf16;
}

DType dtype_of(ElementType type) {
  switch (type) {
    case ElementType::f32:
    case ElementType::f64:
    case ElementType::f16:
    case ElementType::bf16: return DType::f32;
    case ElementType::u8:
    case ElementType::boolean: return DType::u8;
    case ElementType::i8:
    case ElementType::i16:
    case ElementType::u16:
    case ElementType::i32:
    case ElementType::i64:
    case ElementType::u32:
    case ElementType::u64:
    case ElementType::i4:
    case ElementType::u4: return DType::i32;
    default: throw NotSupported(fmt::format("the element type {} is not supported", name_of(type)));
  }
}

std::int64_t elements_of(const Dims& dims) {
  std::int64_t product = 1;
  for (const std::int64_t dim : dims) product *= dim;
  return product;
}

bool has_at_most(const Dims& dims, std::int64_t most) {
  constexpr std::int64_t kMost = std::int64_t{1} << 62;
  std::int64_t product = 1;
  for (const std::int64_t dim : dims) {
    const std::int64_t size = std::max<std::int64_t>(dim, 1);  // strides count an empty axis so
    if (dim < 0 || size > kMost / product) return false;
    product *= size;
  }
  return product <= most || std::ranges::count(dims, 0) > 0;
}

std::size_t axis_of(std::int64_t axis, std::size_t rank) {
  const auto size = static_cast<std::int64_t>(rank);
  CONCORD_CHECK(axis >= -size && axis < size, ShapeError, "axis {} is outside a tensor of {} dimensions", axis, rank);
  return static_cast<std::size_t>(axis < 0 ? axis + size : axis);
}

HostTensor::HostTensor(ElementType element, Dims shape) : type(element), dims(std::move(shape)) {
  require_sizes(dims);
  const auto count = static_cast<std::size_t>(elements_of(dims));
  if (floating()) {
    numbers.resize(count);
  } else {
    whole.resize(count);
  }
}

HostTensor HostTensor::of(Dims dims, std::vector<std::int64_t> values) {
  HostTensor tensor;
  tensor.type = ElementType::i64;
  tensor.dims = std::move(dims);
  tensor.whole = std::move(values);
  return tensor;
}

double HostTensor::number(std::size_t index) const {
  return floating() ? numbers[index] : static_cast<double>(whole[index]);
}

std::int64_t HostTensor::integer(std::size_t index) const {
  if (!floating()) return whole[index];
  const double value = numbers[index];
  if (std::isnan(value)) return 0;
  if (value >= 0x1p63) return std::numeric_limits<std::int64_t>::max();
  if (value < -0x1p63) return std::numeric_limits<std::int64_t>::min();
  return static_cast<std::int64_t>(value);
}

void HostTensor::set(std::size_t index, double value) {
  if (!floating()) {
    HostTensor one(ElementType::f64, {1});
    one.numbers[0] = value;
    set(index, type == ElementType::boolean ? std::int64_t{value != 0} : one.integer(0));
  } else {
    numbers[index] = type == ElementType::f64 ? value : static_cast<double>(static_cast<float>(value));
  }
}

void HostTensor::set(std::size_t index, std::int64_t value) {
  if (floating()) {
    set(index, static_cast<double>(value));
    return;
  }
  switch (type) {  // as C converts integers
    case ElementType::boolean: whole[index] = value != 0 ? 1 : 0; return;
    case ElementType::i32: whole[index] = static_cast<std::int32_t>(value); return;
    case ElementType::u32: whole[index] = static_cast<std::uint32_t>(value); return;
    case ElementType::i16: whole[index] = static_cast<std::int16_t>(value); return;
    case ElementType::u16: whole[index] = static_cast<std::uint16_t>(value); return;
    case ElementType::i8: whole[index] = static_cast<std::int8_t>(value); return;
    case ElementType::u8: whole[index] = static_cast<std::uint8_t>(value); return;
    default: whole[index] = value;
  }
}

void HostTensor::copy(std::size_t index, const HostTensor& source, std::size_t from) {
  CONCORD_CHECK(source.floating() == floating(), ShapeError, "operands of types {} and {}", name_of(type),
                name_of(source.type));
  const std::size_t size = floating() ? numbers.size() : whole.size();
  const std::size_t source_size = floating() ? source.numbers.size() : source.whole.size();
  CONCORD_CHECK(index < size && from < source_size, ShapeError, "element {} of {}, or {} of {}", from, source_size,
                index, size);
  if (floating()) {
    numbers[index] = source.numbers[from];
  } else {
    whole[index] = source.whole[from];
  }
}

HostTensor HostTensor::reshaped(Dims to) const {
  CONCORD_CHECK(elements_of(to) == elements(), ShapeError, "[{}] does not have the elements of [{}]",
                fmt::join(to, ", "), fmt::join(dims, ", "));
  HostTensor tensor = *this;
  tensor.dims = std::move(to);
  return tensor;
}

HostTensor host_tensor_of(const TensorProto& tensor) {
  (void)dtype_of(tensor.type);  // refuses what is not supported
  HostTensor host(tensor.type, tensor.dims);
  const auto count = static_cast<std::size_t>(tensor.elements());
  for (std::size_t i = 0; i < count; ++i) {
    if (host.floating()) {
      host.numbers[i] = float_at(tensor, i);
    } else {
      host.whole[i] = integer_at(tensor, i);
    }
  }
  return host;
}

HostTensor host_tensor_of(const Tensor& tensor, ElementType type) {
  HostTensor host(type, Dims(tensor.shape().dims().begin(), tensor.shape().dims().end()));
  const auto fill = [&](const auto values) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      if constexpr (std::is_same_v<std::remove_cvref_t<decltype(values[0])>, float>) {
        host.set(i, static_cast<double>(values[i]));
      } else {
        host.set(i, static_cast<std::int64_t>(values[i]));
      }
    }
  };
  switch (tensor.dtype()) {
    case DType::f32: fill(tensor.values<float>()); break;
    case DType::i32: fill(tensor.values<std::int32_t>()); break;
    case DType::u8: fill(tensor.values<std::uint8_t>()); break;
    default: throw NotSupported(fmt::format("a known value of type {} is not supported", name_of(tensor.dtype())));
  }
  return host;
}

Tensor tensor_of(const HostTensor& host) {
  Tensor tensor(dtype_of(host.type), Shape(host.dims));
  bool inexact = false;
  const auto fill = [&](auto values) {
    using Number = std::remove_cvref_t<decltype(values[0])>;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if constexpr (std::is_same_v<Number, float>) {
        values[i] = static_cast<float>(host.numbers[i]);
      } else {
        const std::int64_t value = host.whole[i];
        CONCORD_CHECK(std::in_range<Number>(value), NotSupported,
                      "the {} constant {} is outside the range of {}, with which Concord computes", name_of(host.type),
                      value, concord::name_of(tensor.dtype()));
        inexact = inexact || value > (1 << 24) || value < -(1 << 24);
        values[i] = static_cast<Number>(value);
      }
    }
  };
  switch (tensor.dtype()) {
    case DType::f32: fill(tensor.values<float>()); break;
    case DType::i32: fill(tensor.values<std::int32_t>()); break;
    default: fill(tensor.values<std::uint8_t>()); break;
  }
  if (inexact) {
    log(LogLevel::warning,
        fmt::format("an {} constant of shape [{}] has numbers beyond 2^24: arithmetic with them is rounded to fp32",
                    name_of(host.type), fmt::join(host.dims, ", ")));
  }
  return tensor;
}

Tensor float_tensor_of(const TensorProto& proto) {
  Tensor tensor(DType::f32, Shape(proto.dims));
  const auto values = tensor.values<float>();
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(float_at(proto, i));
  return tensor;
}

Dims broadcast_dims(const Dims& a, const Dims& b) {
  Dims result = a.size() >= b.size() ? a : b;
  const Dims& other = a.size() >= b.size() ? b : a;
  for (std::size_t i = 0; i < other.size(); ++i) {
    std::int64_t& dim = result[result.size() - other.size() + i];
    CONCORD_CHECK(dim == other[i] || dim == 1 || other[i] == 1, ShapeError, "[{}] and [{}] do not broadcast",
                  fmt::join(a, ", "), fmt::join(b, ", "));
    if (dim == 1) dim = other[i];
  }
  return result;
}

Dims strides_of(const Dims& dims) {
  Dims strides(dims.size(), 1);
  for (std::size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  return strides;
}

void each_position(const Dims& dims, const std::function<void(const Dims& position)>& visit) {
  require_sizes(dims);
  if (elements_of(dims) == 0) return;
  Dims position(dims.size(), 0);
  while (true) {
    visit(position);
    std::size_t axis = dims.size();
    while (axis > 0 && ++position[axis - 1] == dims[axis - 1]) position[--axis] = 0;
    if (axis == 0) return;
  }
}

std::vector<std::size_t> broadcast_places(const Dims& from, const Dims& dims) {
  const Dims strides = strides_of(from);
  std::vector<std::size_t> places;
  each_position(dims, [&](const Dims& position) {
    std::int64_t place = 0;
    for (std::size_t i = 0; i < from.size(); ++i) {
      if (from[i] != 1) place += position[dims.size() - from.size() + i] * strides[i];
    }
    places.push_back(static_cast<std::size_t>(place));
  });
  return places;
}

}  // namespace concord::onnx
