// Layouts of the CPU backend: oneDNN memory descriptors behind device/layout.hpp. Plain row-major is the null Layout.
// Images travel channels-last between operators (what oneDNN's AVX-512 convolutions are fastest with); weights take
// whatever blocked format a convolution asks for. Used by every family here.
#pragma once

#include <vector>

#include "concord/core/tensor.hpp"
#include "concord/device/layout.hpp"
#include "onednn.hpp"

namespace concord::cpu {

/// Throws NotSupported for a type that oneDNN lacks.
[[nodiscard]] dnnl::memory::data_type data_type_of(DType type);

/// Row-major.
[[nodiscard]] Desc plain_desc(DType type, const Dims& dims);
[[nodiscard]] Desc plain_desc(const TensorSpec& spec);
/// Any format, for oneDNN to choose.
[[nodiscard]] Desc any_desc(DType type, const Dims& dims);
/// A tensor of 3 to 5 dimensions (N, C, …) stored N, …, C.
[[nodiscard]] Desc channels_last_desc(const TensorSpec& spec);

/// The descriptor of a tensor stored so.
[[nodiscard]] Desc desc_of(const TensorSpec& spec, const Layout& layout);
/// `desc` as a Layout of a tensor of `spec`; null when it is row-major (dimensions of size 1 do not count).
[[nodiscard]] Layout layout_of(const TensorSpec& spec, const Desc& desc);
/// N, …, C; null when that is the same as row-major (one channel or one pixel). `spec` has 3 to 5 dimensions.
[[nodiscard]] Layout channels_last(const TensorSpec& spec);
/// Whether `layout` is N, …, C and not also row-major.
[[nodiscard]] bool is_channels_last(const TensorSpec& spec, const Layout& layout);

/// Element strides of the logical dimensions of a row-major or channels-last tensor.
[[nodiscard]] std::vector<std::int64_t> strides_in(const TensorSpec& spec, const Layout& layout);

}  // namespace concord::cpu
