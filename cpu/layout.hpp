// Layouts of the CPU backend: oneDNN memory descriptors behind device/layout.hpp. Plain row-major is the null Layout.
// Images travel channels-last between operators (what oneDNN's AVX-512 convolutions are fastest with); weights take
// whatever blocked format a convolution asks for. Where the processor has bf16 units, values in bf16 mode are stored in
// 16 bits: a layout then has another element type than its tensor (`stored_type`). Used by every family here.
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
/// `desc` as a Layout of a tensor of `spec`; null when it is row-major (dimensions of size 1 do not count) and has the
/// type of `spec`.
[[nodiscard]] Layout layout_of(const TensorSpec& spec, const Desc& desc);
/// N, …, C, stored as `stored`, or as the type of `spec`; null when that is the same as row-major (one channel or one
/// pixel) of that type. `spec` has 3 to 5 dimensions.
[[nodiscard]] Layout channels_last(const TensorSpec& spec);
[[nodiscard]] Layout channels_last(const TensorSpec& spec, DType stored);
/// Row-major, stored as `stored`; null for the type of `spec`.
[[nodiscard]] Layout row_major(const TensorSpec& spec, DType stored);
/// Whether `layout` is N, …, C and not also row-major, in any type.
[[nodiscard]] bool is_channels_last(const TensorSpec& spec, const Layout& layout);
/// The type of the stored elements: that of `spec`, or bf16.
[[nodiscard]] DType stored_type(const TensorSpec& spec, const Layout& layout);
/// `spec` with the stored type.
[[nodiscard]] TensorSpec stored_as(const TensorSpec& spec, DType stored);
/// Whether `layout` is null or row-major in another type.
[[nodiscard]] bool is_row_major(const Layout& layout);

/// Element strides of the logical dimensions of a row-major or channels-last tensor.
[[nodiscard]] std::vector<std::int64_t> strides_in(const TensorSpec& spec, const Layout& layout);

}  // namespace concord::cpu
