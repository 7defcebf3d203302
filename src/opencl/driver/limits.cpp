// Reads the limits from CONCORD_DEBUG and writes the lines that make a compiler enforce them.
#include "concord/opencl/driver/limits.hpp"

#include <fmt/format.h>

#include <array>
#include <string_view>

#include "concord/core/debug_options.hpp"

namespace concord::opencl {
namespace {

struct NumberKey {
  std::string_view name;
  std::size_t DeviceLimits::*member;
};
constexpr std::array<NumberKey, 5> kNumbers{{{"work_group", &DeviceLimits::work_group},
                                             {"local_memory", &DeviceLimits::local_memory},
                                             {"compute_units", &DeviceLimits::compute_units},
                                             {"memory", &DeviceLimits::memory},
                                             {"allocation", &DeviceLimits::allocation}}};

/// What the value 0 forbids: a pragma, or identifiers of OpenCL C.
struct FlagKey {
  std::string_view name;
  bool DeviceLimits::*member;
  std::string_view pragma;
};
// OpenCL 1.2 allows a pointer to half without extensions (vload_half), so the word half is not forbidden.
constexpr std::array<FlagKey, 5> kFlags{
    {{"extensions", &DeviceLimits::extensions, "OPENCL EXTENSION all : disable\n#pragma GCC poison asm __asm __asm__"},
     {"fp16", &DeviceLimits::fp16,
      "GCC poison half2 half3 half4 half8 half16\n#pragma OPENCL EXTENSION cl_khr_fp16 : disable"},
     {"fp64", &DeviceLimits::fp64, "GCC poison double double2 double3 double4 double8 double16"},
     {"images", &DeviceLimits::images,
      "GCC poison image1d_t image1d_buffer_t image1d_array_t image2d_t image2d_array_t image3d_t sampler_t"},
     {"subgroups", &DeviceLimits::subgroups,
      "GCC poison get_sub_group_size get_sub_group_id get_sub_group_local_id sub_group_barrier sub_group_broadcast "
      "sub_group_reduce_add sub_group_shuffle intel_sub_group_shuffle"}}};

std::string key_of(std::string_view limit) { return fmt::format("limit.{}", limit); }

}  // namespace

DeviceLimits device_limits() {
  DeviceLimits limits;
  for (const NumberKey& number : kNumbers) {
    if (const auto value = debug_number(key_of(number.name), 1, DeviceLimits::kNone)) limits.*number.member = *value;
  }
  for (const FlagKey& flag : kFlags) limits.*flag.member = debug_flag(key_of(flag.name), true);
  if (debug_flag("portable", false)) limits.extensions = false;
  return limits;
}

std::string prologue_of(const DeviceLimits& limits) {
  std::string lines;
  for (const FlagKey& flag : kFlags) {
    if (!(limits.*flag.member)) lines += fmt::format("#pragma {}\n", flag.pragma);
  }
  return lines.empty() ? lines : lines + "#line 1\n";
}

}  // namespace concord::opencl
