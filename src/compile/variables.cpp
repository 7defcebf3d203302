// Variables: storage of what persists, and first values from the counter-based generator.
#include "concord/compile/variables.hpp"

#include <philox.h>

#include <cmath>
#include <numbers>

#include "concord/core/check.hpp"
#include "concord/core/parallel.hpp"
#include "concord/core/philox.hpp"

namespace concord {
namespace {

// Box and Muller on the uniforms of indices 2i and 2i + 1, in double precision on the host.
float normal(std::uint64_t index, std::uint32_t purpose, std::uint64_t seed) {
  const double u = 1.0 - static_cast<double>(philox_uniform(2 * index, purpose, 0, seed));
  const double v = static_cast<double>(philox_uniform(2 * index + 1, purpose, 0, seed));
  return static_cast<float>(std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * v));
}

void fill_floats(std::span<float> values, const Initializer& init, std::uint32_t purpose, std::uint64_t seed) {
  for_blocks(values.size(), [&](std::size_t, std::size_t first, std::size_t count) {
    for (std::size_t i = first; i < first + count; ++i) {
      switch (init.kind) {
        case Initializer::Kind::uniform:
          values[i] = init.a + (init.b - init.a) * philox_uniform(i, purpose, 0, seed);
          break;
        case Initializer::Kind::normal: values[i] = init.a + init.b * normal(i, purpose, seed); break;
        default: values[i] = init.a;
      }
    }
  });
  for (std::int64_t i = init.zeros_begin; i < init.zeros_end; ++i) values[static_cast<std::size_t>(i)] = 0;
}

}  // namespace

Tensor initial_value(const Variable& variable, std::uint64_t seed) {
  if (variable.value.elements() > 0) return variable.value;
  Tensor tensor(variable.spec);
  if (variable.init.kind == Initializer::Kind::seed) {
    const auto words = tensor.values<std::int32_t>();
    words[0] = static_cast<std::int32_t>(seed & 0xFFFFFF);
    words[1] = static_cast<std::int32_t>(((seed >> 24) ^ (seed >> 48)) & 0xFFFFFF);
    return tensor;
  }
  switch (variable.spec.dtype) {
    case DType::f32: fill_floats(tensor.values<float>(), variable.init, philox_purpose(variable.name), seed); break;
    case DType::i32:
      for (std::int32_t& v : tensor.values<std::int32_t>()) v = static_cast<std::int32_t>(variable.init.a);
      break;
    default:
      CONCORD_CHECK(variable.init.kind == Initializer::Kind::constant && variable.init.a == 0, NotSupported,
                    "variable '{}' of type {} needs an explicit first value", variable.name,
                    name_of(variable.spec.dtype));
  }
  return tensor;
}

Variables::Variables(DevicePtr device, std::uint64_t seed) : device_(std::move(device)), seed_(seed) {
  CONCORD_CHECK(device_, ArgumentError, "Variables are given a null device; Device::open gives one");
}

BufferPtr Variables::require(const Variable& variable) {
  const Device::Use use(device());
  const auto found = slots_.find(variable.name);
  if (found != slots_.end()) {
    CONCORD_CHECK(found->second.spec == variable.spec, ShapeError,
                  "variable '{}' is {} on this device, the program wants {}", variable.name, found->second.spec.str(),
                  variable.spec.str());
    return found->second.buffer;
  }
  BufferPtr buffer = device_->allocate(variable.spec.bytes());
  device_->write(*buffer, 0, initial_value(variable, seed_).bytes());
  slots_.emplace(variable.name, Slot{variable.spec, buffer});
  return buffer;
}

Tensor Variables::read(const std::string& name) const {
  const Device::Use use(device());
  const auto found = slots_.find(name);
  CONCORD_CHECK(found != slots_.end(), ArgumentError, "there is no variable '{}'", name);
  Tensor tensor = Tensor::unset(found->second.spec);
  device_->read(*found->second.buffer, 0, tensor.bytes());
  return tensor;
}

const BufferPtr& Variables::buffer_for(const std::string& name, const Tensor& value) const {
  const auto found = slots_.find(name);
  CONCORD_CHECK(found != slots_.end(), ArgumentError, "there is no variable '{}'", name);
  CONCORD_CHECK(found->second.spec == value.spec(), ShapeError, "variable '{}' is {}, got {}", name,
                found->second.spec.str(), value.spec().str());
  CONCORD_CHECK(value.bytes().size() == value.spec().bytes(), ArgumentError,
                "variable '{}' is given a tensor that holds nothing: it was moved from", name);
  return found->second.buffer;
}

void Variables::write(const std::string& name, const Tensor& value) {
  const Device::Use use(device());
  device_->write(*buffer_for(name, value), 0, value.bytes());
}

void Variables::write_kept(const std::string& name, const Tensor& value) {
  device_->write_kept(*buffer_for(name, value), 0, value.bytes());
}

std::vector<std::string> Variables::names() const {
  std::vector<std::string> names;
  for (const auto& [name, slot] : slots_) names.push_back(name);
  return names;
}

std::map<std::string, Tensor> Variables::read_all() const {
  const Device::Use use(device());
  std::map<std::string, Tensor> all;
  for (const auto& [name, slot] : slots_) all.emplace(name, read(name));
  return all;
}

}  // namespace concord
