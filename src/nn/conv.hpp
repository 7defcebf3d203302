// The convolution layers Conv1d, Conv2d, Conv3d and their transposed forms.
#pragma once

#include "concord/core/export.hpp"
#include "concord/nn/module.hpp"
#include "concord/ops/rearrange.hpp"

namespace CONCORD_PUBLIC concord {
namespace nn {

template <std::size_t Rank>
struct ConvLayerOptions {
  Extent<Rank> stride = 1;
  Padding<Rank> padding = 0;  // nn::same keeps the size
  Extent<Rank> dilation = 1;
  std::int64_t groups = 1;
  bool bias = true;
  /// The values of the padding: zeros, or pixels of the image.
  PadMode padding_mode = PadMode::constant;
  /// Mirrors the kernel: the convolution of signal processing. PyTorch and the default compute a cross-correlation.
  bool mirror = false;
};
using Conv1dOptions = ConvLayerOptions<1>;
using Conv2dOptions = ConvLayerOptions<2>;
using Conv3dOptions = ConvLayerOptions<3>;

/// x (N, in, …) → (N, out, …) with `Rank` spatial dimensions. weight (out, in/groups, kernel…), bias (out).
template <std::size_t Rank>
class Conv : public Module {
 public:
  using Options = ConvLayerOptions<Rank>;
  /// Throws ArgumentError for sizes below 1, for groups that do not divide both numbers of channels, and for nn::same
  /// with a stride above 1.
  Conv(std::int64_t in, std::int64_t out, Extent<Rank> kernel, const Options& options = {});
  [[nodiscard]] Value forward(Value x) override;
  [[nodiscard]] const VariablePtr& weight() const { return weight_; }
  /// Null if the layer has no bias.
  [[nodiscard]] const VariablePtr& bias() const { return bias_; }

 private:
  std::int64_t in_;
  Extent<Rank> kernel_;
  Options options_;
  VariablePtr weight_, bias_;
};
extern template class Conv<1>;
extern template class Conv<2>;
extern template class Conv<3>;
using Conv1d = Conv<1>;
using Conv2d = Conv<2>;
using Conv3d = Conv<3>;

template <std::size_t Rank>
struct ConvTransposeLayerOptions {
  Extent<Rank> stride = 1;
  Extent<Rank> padding = 0;         // pixels removed from each side of the result
  Extent<Rank> output_padding = 0;  // pixels added at the end of the result
  std::int64_t groups = 1;
  bool bias = true;
  Extent<Rank> dilation = 1;
};
using ConvTranspose1dOptions = ConvTransposeLayerOptions<1>;
using ConvTranspose2dOptions = ConvTransposeLayerOptions<2>;
using ConvTranspose3dOptions = ConvTransposeLayerOptions<3>;

/// x (N, in, …) → (N, out, …), larger by the factor `stride`. weight (in, out/groups, kernel…), bias (out). Zeiler et
/// al., "Deconvolutional Networks", 2010.
template <std::size_t Rank>
class ConvTranspose : public Module {
 public:
  using Options = ConvTransposeLayerOptions<Rank>;
  /// Throws ArgumentError for sizes below 1, and for groups that do not divide both numbers of channels.
  ConvTranspose(std::int64_t in, std::int64_t out, Extent<Rank> kernel, const Options& options = {});
  [[nodiscard]] Value forward(Value x) override;
  [[nodiscard]] const VariablePtr& weight() const { return weight_; }
  /// Null if the layer has no bias.
  [[nodiscard]] const VariablePtr& bias() const { return bias_; }

 private:
  std::int64_t in_;
  Options options_;
  VariablePtr weight_, bias_;
};
extern template class ConvTranspose<1>;
extern template class ConvTranspose<2>;
extern template class ConvTranspose<3>;
using ConvTranspose1d = ConvTranspose<1>;
using ConvTranspose2d = ConvTranspose<2>;
using ConvTranspose3d = ConvTranspose<3>;

}  // namespace nn
}  // namespace concord
