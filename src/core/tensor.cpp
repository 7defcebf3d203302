// Tensor: aligned host storage.
#include "concord/core/tensor.hpp"

#include <cstring>
#include <new>

#include "concord/core/check.hpp"
#include "concord/core/host_memory.hpp"

namespace concord {
namespace {

constexpr std::align_val_t kAlignment{64};

std::shared_ptr<std::byte[]> allocate(const TensorSpec& spec) {
  const std::size_t bytes = std::max<std::size_t>(spec.bytes(), 1);
  auto* raw = static_cast<std::byte*>(::operator new[](bytes, kAlignment, std::nothrow));
  CONCORD_CHECK(raw != nullptr, OutOfMemory, "no host memory for {} ({} bytes)", spec.str(), bytes);
  return with_host_memory("a tensor", [raw] {
    return std::shared_ptr<std::byte[]>(raw, [](std::byte* p) { ::operator delete[](p, kAlignment); });
  });
}

}  // namespace

std::string TensorSpec::str() const { return fmt::format("{} {}", name_of(dtype), shape.str()); }

Tensor::Tensor(TensorSpec spec) : Tensor(unset(std::move(spec))) { std::memset(data_.get(), 0, spec_.bytes()); }

Tensor Tensor::unset(TensorSpec spec) {
  Tensor tensor;
  tensor.data_ = allocate(spec);
  tensor.spec_ = std::move(spec);
  return tensor;
}

Tensor Tensor::from_bytes(TensorSpec spec, std::span<const std::byte> bytes) {
  CONCORD_CHECK(bytes.size() == spec.bytes(), ShapeError, "{} needs {} bytes, got {}", spec.str(), spec.bytes(),
                bytes.size());
  Tensor tensor = unset(std::move(spec));
  if (!bytes.empty()) std::memcpy(tensor.data_.get(), bytes.data(), bytes.size());
  return tensor;
}

Tensor Tensor::clone() const { return from_bytes(spec_, bytes()); }

Tensor Tensor::reshaped(Shape shape) const {
  CONCORD_CHECK(shape.elements() == elements(), ShapeError, "cannot reshape {} to {}", spec_.shape.str(), shape.str());
  Tensor tensor = *this;
  tensor.spec_.shape = std::move(shape);
  return tensor;
}

void Tensor::require(DType type) const {
  CONCORD_CHECK(type == spec_.dtype, ShapeError, "tensor holds {}, cannot be read as {}", name_of(spec_.dtype),
                name_of(type));
}

}  // namespace concord
