// GemmImplementation: one way to compute a matrix multiplication. Each is defined at the end of the file of its name.
#pragma once

#include <array>
#include <memory>
#include <string_view>
#include <vector>

#include "concord/opencl/gemm/problem.hpp"
#include "concord/opencl/launch/context.hpp"

namespace concord::opencl {

struct GemmImplementation {
  std::string_view name;
  /// Whether devices of this kind have it among their kernel alternatives.
  bool (*is_alternative_of)(const Context&);
  /// Why it does not support the problem; empty where it does.
  std::string_view (*refusal)(const Context&, const Gemm&);
  /// Why it does not run on the device in this precision; empty where it does. May run a check, so call it last.
  std::string_view (*device_refusal)(Context&, Precision);
  double (*seconds)(const Context&, const Gemm&);  // expected; infinite where it is not worth it, 0 where it always is
  std::unique_ptr<Kernel> (*prepare)(Context&, const Gemm&, std::string_view label);  // tiled as it plans
  std::array<std::string_view, 3> files;  // of cl_kernels that multiply; empty for none
  /// The tilings that a tuner should measure for a supported problem; empty where there is only one.
  std::vector<GemmTiling> (*tilings)(const Context&, const Gemm&) = [](const Context&, const Gemm&) {
    return std::vector<GemmTiling>{};
  };
  /// Null where the implementation has no such tile, cannot split k so, or would need too much memory for it.
  std::unique_ptr<Kernel> (*prepare_tiling)(Context&, const Gemm&, const GemmTiling&, std::string_view label) =
      [](Context&, const Gemm&, const GemmTiling&, std::string_view) { return std::unique_ptr<Kernel>(); };
  bool reads_channels_last = false;  // Gemm::has_channels_last
};

// Refusals that several implementations return.
inline constexpr std::string_view kNoRefusal;
inline constexpr std::string_view kNoMatrixCores = "the device has no such matrix cores";
inline constexpr std::string_view kNotHopper =
    "the device is not an NVIDIA Hopper GPU";  // later ones have other instructions
[[nodiscard]] bool is_hopper(const Context& context);
/// Whether it is an NVIDIA GPU with the matrix cores of mma.sync.
[[nodiscard]] bool has_mma(const Context& context);
inline constexpr std::string_view kWrongProducts = "the check on the device found a wrong result";

/// The numbers of parts of k that a tuner should try: one, and half, once and twice the planned number.
[[nodiscard]] std::vector<std::int64_t> parts_around(std::int64_t planned);
/// The same for an implementation that splits k by split_of: the numbers of parts that result, without repeats.
[[nodiscard]] std::vector<std::int64_t> parts_around(std::int64_t planned, std::int64_t k, std::int64_t unit);

}  // namespace concord::opencl
