// Padding layers with PyTorch's names.
#pragma once

#include "concord/core/export.hpp"
#include "concord/nn/module.hpp"
#include "concord/ops/rearrange.hpp"

namespace CONCORD_PUBLIC concord {
namespace nn {

/// Pads the `axes` spatial axes of x (N, C, spatial…). Sizes are in PyTorch's order, from the last axis to the first:
/// left, right, top, bottom, front, back. One number applies to all sides.
template <std::size_t axes, PadMode mode>
class SpatialPad : public Module {
 public:
  using Sizes = std::array<std::int64_t, 2 * axes>;
  explicit SpatialPad(const Sizes& sizes) : sizes_(sizes) {}
  explicit SpatialPad(std::int64_t all) { sizes_.fill(all); }
  SpatialPad(const Sizes& sizes, float value) requires(mode == PadMode::constant) : sizes_(sizes), value_(value) {}
  SpatialPad(std::int64_t all, float value) requires(mode == PadMode::constant) : value_(value) { sizes_.fill(all); }
  [[nodiscard]] Value forward(Value x) override { return pad_spatial(x, mode, sizes_, value_); }

 private:
  Sizes sizes_;
  float value_ = 0;
};

using ZeroPad1d = SpatialPad<1, PadMode::constant>;
using ZeroPad2d = SpatialPad<2, PadMode::constant>;
using ZeroPad3d = SpatialPad<3, PadMode::constant>;
using ConstantPad1d = SpatialPad<1, PadMode::constant>;
using ConstantPad2d = SpatialPad<2, PadMode::constant>;
using ConstantPad3d = SpatialPad<3, PadMode::constant>;
using ReflectionPad1d = SpatialPad<1, PadMode::reflect>;
using ReflectionPad2d = SpatialPad<2, PadMode::reflect>;
using ReflectionPad3d = SpatialPad<3, PadMode::reflect>;
using ReplicationPad1d = SpatialPad<1, PadMode::replicate>;
using ReplicationPad2d = SpatialPad<2, PadMode::replicate>;
using ReplicationPad3d = SpatialPad<3, PadMode::replicate>;
using CircularPad1d = SpatialPad<1, PadMode::circular>;
using CircularPad2d = SpatialPad<2, PadMode::circular>;
using CircularPad3d = SpatialPad<3, PadMode::circular>;

}  // namespace nn
}  // namespace concord
