// Layouts: descriptors to and from the opaque Layout of the device contract.
#include "layout.hpp"

#include <fmt/format.h>

#include "concord/core/check.hpp"

namespace concord::cpu {
namespace {

// oneDNN knows no tensors without dimensions.
Dims dims_for(const Shape& shape) {
  if (shape.rank() == 0) return {1};
  return {shape.dims().begin(), shape.dims().end()};
}

bool same_strides(const Dims& dims, const Dims& a, const Dims& b) {
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] != 1 && a[i] != b[i]) return false;
  }
  return true;
}

bool has_channels(std::size_t rank) { return rank >= 3 && rank <= 5; }

enum class Order : std::uint8_t { row_major, channels_last, other };

class DescLayout final : public LayoutDescription {
 public:
  DescLayout(Desc desc, DType stored, Order order, std::string name)
      : desc_(std::move(desc)), stored_(stored), order_(order), name_(std::move(name)) {}
  [[nodiscard]] std::size_t bytes() const override { return desc_.get_size(); }
  [[nodiscard]] bool equals(const LayoutDescription& other) const override {
    const auto* mine = dynamic_cast<const DescLayout*>(&other);
    return mine != nullptr && mine->desc_ == desc_;
  }
  [[nodiscard]] std::string str() const override { return name_; }
  [[nodiscard]] Layout viewed_as(const TensorSpec& spec) const override {
    return order_ == Order::row_major && spec.shape.rank() > 0 ? row_major(spec, stored_) : nullptr;
  }
  [[nodiscard]] const Desc& desc() const { return desc_; }
  [[nodiscard]] DType stored() const { return stored_; }
  [[nodiscard]] Order order() const { return order_; }

 private:
  Desc desc_;
  DType stored_;
  Order order_;
  std::string name_;
};

const DescLayout& as_desc_layout(const Layout& layout) { return dynamic_cast<const DescLayout&>(*layout); }

/// The type that oneDNN stores, of a tensor of this type: bf16 may stand for f32.
DType stored_in(const Desc& desc, DType type) {
  return type_of(desc) == dnnl::memory::data_type::bf16 ? DType::bf16 : type;
}

}  // namespace

dnnl::memory::data_type data_type_of(DType type) {
  switch (type) {
    case DType::f32: return dnnl::memory::data_type::f32;
    case DType::f16: return dnnl::memory::data_type::f16;
    case DType::bf16: return dnnl::memory::data_type::bf16;
    case DType::i32: return dnnl::memory::data_type::s32;
    case DType::u8: return dnnl::memory::data_type::u8;
  }
  throw NotSupported("oneDNN does not have this element type");
}

Desc plain_desc(DType type, const Dims& dims) {
  Dims strides(dims.size());
  std::int64_t stride = 1;
  for (std::size_t i = dims.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= dims[i];
  }
  return {dims, data_type_of(type), strides};
}

Desc plain_desc(const TensorSpec& spec) { return plain_desc(spec.dtype, dims_for(spec.shape)); }

Desc any_desc(DType type, const Dims& dims) { return {dims, data_type_of(type), dnnl::memory::format_tag::any}; }

Desc channels_last_desc(const TensorSpec& spec) {
  using Tag = dnnl::memory::format_tag;
  const std::size_t rank = spec.shape.rank();
  CONCORD_CHECK(has_channels(rank), ShapeError, "channels-last needs 3 to 5 dimensions, got {}", spec.str());
  return {dims_for(spec.shape), data_type_of(spec.dtype), rank == 3 ? Tag::nwc : rank == 4 ? Tag::nhwc : Tag::ndhwc};
}

Desc desc_of(const TensorSpec& spec, const Layout& layout) {
  if (!layout) return plain_desc(spec);
  return as_desc_layout(layout).desc();
}

Layout layout_of(const TensorSpec& spec, const Desc& desc) {
  const Dims dims = dims_of(desc);
  const auto strides = strides_of(desc);
  const TensorSpec stored = stored_as(spec, stored_in(desc, spec.dtype));
  const bool is_narrow = stored.dtype != spec.dtype;
  const auto make = [&](const Desc& d, Order order, const std::string& name) {
    return std::make_shared<DescLayout>(d, stored.dtype, order, is_narrow ? name + " bf16" : name);
  };
  if (strides && desc.get_size() == stored.bytes()) {
    if (same_strides(dims, *strides, *strides_of(plain_desc(stored.dtype, dims)))) {
      return is_narrow ? make(plain_desc(stored), Order::row_major, "row-major") : nullptr;
    }
    if (has_channels(spec.shape.rank()) && dims.size() == spec.shape.rank()) {
      const Desc last = channels_last_desc(stored);
      const char* name = dims.size() == 3 ? "nwc" : dims.size() == 4 ? "nhwc" : "ndhwc";
      if (same_strides(dims, *strides, *strides_of(last))) return make(last, Order::channels_last, name);
    }
    return make(desc, Order::other, "permuted");
  }
  return make(desc, Order::other, "blocked");
}

TensorSpec stored_as(const TensorSpec& spec, DType stored) { return {stored, spec.shape}; }

Layout channels_last(const TensorSpec& spec) { return layout_of(spec, channels_last_desc(spec)); }

Layout channels_last(const TensorSpec& spec, DType stored) {
  return layout_of(spec, channels_last_desc(stored_as(spec, stored)));
}

Layout row_major(const TensorSpec& spec, DType stored) {
  return stored == spec.dtype ? nullptr : layout_of(spec, plain_desc(stored_as(spec, stored)));
}

bool is_channels_last(const TensorSpec& spec, const Layout& layout) {
  return layout && has_channels(spec.shape.rank()) && as_desc_layout(layout).order() == Order::channels_last;
}

bool is_row_major(const Layout& layout) { return !layout || as_desc_layout(layout).order() == Order::row_major; }

DType stored_type(const TensorSpec& spec, const Layout& layout) {
  return layout ? as_desc_layout(layout).stored() : spec.dtype;
}

std::vector<std::int64_t> strides_in(const TensorSpec& spec, const Layout& layout) {
  if (!layout) return spec.shape.strides();
  const auto strides = strides_of(desc_of(spec, layout));
  CONCORD_CHECK(strides.has_value(), DeviceError, "a blocked {} has no strides", spec.str());
  return *strides;
}

}  // namespace concord::cpu
