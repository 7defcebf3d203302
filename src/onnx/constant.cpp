// Numbers of the host as values of a graph: see constant.hpp.
#include "concord/onnx/constant.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>

#include "concord/core/check.hpp"
#include "concord/ops/pointwise.hpp"

namespace concord::onnx {
namespace {

std::uint64_t fnv1a(std::span<const std::byte> bytes) {
  std::uint64_t hash = 14695981039346656037U;
  for (const std::byte byte : bytes) hash = (hash ^ std::to_integer<std::uint64_t>(byte)) * 1099511628211U;
  return hash;
}

// A constant has the same variable in every graph and network, since one name must be one variable.
VariablePtr shared_constant(Tensor tensor) {
  static std::mutex mutex;
  static std::map<std::string, std::weak_ptr<Variable>> constants;
  const std::lock_guard lock(mutex);
  std::erase_if(constants, [](const auto& entry) { return entry.second.expired(); });
  const std::string stem = fmt::format("constant.{:016x}", fnv1a(tensor.bytes()));
  for (int suffix = 0;; ++suffix) {
    const std::string name = suffix == 0 ? stem : fmt::format("{}.{}", stem, suffix);
    const auto found = constants.find(name);
    if (found == constants.end()) {
      auto made = std::make_shared<Variable>();
      made->name = name;
      made->spec = tensor.spec();
      made->value = std::move(tensor);
      made->role = VariableRole::transient;
      constants.emplace(name, made);
      return made;
    }
    const VariablePtr constant = found->second.lock();
    if (constant->spec == tensor.spec() && std::ranges::equal(constant->value.bytes(), tensor.bytes())) return constant;
  }
}

}  // namespace

Value constant_value(Graph& graph, const HostTensor& host) {
  Tensor tensor = tensor_of(host);
  const auto bytes = tensor.bytes();
  const std::size_t size = size_of(tensor.dtype());
  bool uniform = true;
  for (std::size_t i = size; uniform && i < bytes.size(); ++i) uniform = bytes[i] == bytes[i - size];
  constexpr std::int64_t kExact = 1 << 24;
  if (uniform && (host.elements() == 0 || host.floating() || std::abs(host.whole[0]) <= kExact)) {
    const auto number = host.elements() == 0 ? 0.0F : static_cast<float>(host.number(0));
    const Value value = full(graph, Shape(host.dims), number);
    return tensor.dtype() == DType::f32 ? value : cast(value, tensor.dtype());
  }
  return graph.variable(shared_constant(std::move(tensor)));
}

}  // namespace concord::onnx
