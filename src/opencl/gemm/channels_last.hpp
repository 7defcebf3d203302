// Where values are stored channels-last (formula/channels_last.hpp): the copy engine's GEMM must be allowed to read
// them. Used by convolutions and matmul.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "concord/opencl/gemm/implementation.hpp"
#include "concord/opencl/launch/context.hpp"

namespace concord::opencl {

/// The GEMM that reads such values.
[[nodiscard]] const GemmImplementation& tma_gemm();

/// Why the precision, the device or the user's settings keep values in fp32; empty where they do not. The check on the
/// device is tma_gemm().device_refusal.
[[nodiscard]] std::string_view storage_refusal(const Context& context, Precision precision);

/// The channels of a tap, with padding, if the left operand of this product were filters (conv/filters.hpp): whole
/// tiles of k, as deep as those of the kernel that prepare_gemm chooses.
[[nodiscard]] std::int64_t filter_channels(Context& context, const Gemm& gemm);

/// Whether the tiles of the product are no fewer than the compute units, even the largest tiles.
[[nodiscard]] bool fills_device(const Context& context, const Gemm& gemm);

/// At most so many products are one launch.
inline constexpr std::size_t kMostInOneLaunch = 4;
/// Products that tma_gemm() takes in one launch, which differ in nothing but sizes and places: operands that lie as the
/// copy engine takes them, and one epilogue. Those that have operands and results of their own need kernels with one
/// memory for all (memory_definitions). Null where they are too many, one of them alone fills the device, or a launch
/// each is expected to be faster.
[[nodiscard]] std::unique_ptr<Kernel> prepare_together(Context& context, std::span<const Gemm> products,
                                                       std::string_view label);
/// The same for checks, with the smallest tiles: k in `parts` parts, where it is so long, or whole, with one work-group
/// that claims all works.
[[nodiscard]] std::unique_ptr<Kernel> prepare_together_in(Context& context, std::span<const Gemm> products,
                                                          std::int64_t parts, std::string_view label);

}  // namespace concord::opencl
