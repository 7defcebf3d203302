// Text to limits, and limits to what a compiler refuses.
#include "concord/opencl/driver/limits.hpp"

#include <array>
#include <charconv>
#include <string_view>

#include "concord/core/check.hpp"
#include "concord/core/platform.hpp"
#include "concord/core/text.hpp"

namespace concord::opencl {
namespace {

constexpr std::string_view kVariable = "CONCORD_DEVICE_LIMITS";

struct NumberKey {
  std::string_view name;
  std::size_t DeviceLimits::*member;
};
constexpr std::array<NumberKey, 5> kNumbers{{{"work_group", &DeviceLimits::work_group},
                                             {"local_memory", &DeviceLimits::local_memory},
                                             {"compute_units", &DeviceLimits::compute_units},
                                             {"memory", &DeviceLimits::memory},
                                             {"allocation", &DeviceLimits::allocation}}};

/// What is forbidden with 0: a pragma, or identifiers of OpenCL C.
struct FlagKey {
  std::string_view name;
  bool DeviceLimits::*member;
  std::string_view pragma;
};
// A pointer to half is OpenCL 1.2 without extensions (vload_half), so that the word itself is not forbidden.
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

std::size_t number_of(std::string_view key, std::string_view value, std::size_t least) {
  std::size_t number = 0;
  const auto [rest, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  CONCORD_CHECK(error == std::errc() && rest == value.data() + value.size() && number >= least, ArgumentError,
                "{}: {} is \"{}\", which is no number from {} on", kVariable, key, value, least);
  return number;
}

bool flag_of(std::string_view key, std::string_view value) {
  CONCORD_CHECK(value == "0" || value == "1", ArgumentError,
                "{}: {} is \"{}\"; 0 forbids it, 1 leaves the device what it has", kVariable, key, value);
  return value == "1";
}

void take(DeviceLimits& limits, std::string_view key, std::string_view value) {
  std::string known;
  for (const NumberKey& number : kNumbers) {
    if (key == number.name) {
      limits.*number.member = number_of(key, value, 1);
      return;
    }
    known += fmt::format("{}, ", number.name);
  }
  for (const FlagKey& flag : kFlags) {
    if (key == flag.name) {
      limits.*flag.member = flag_of(key, value);
      return;
    }
    known += fmt::format("{}{}", flag.name, &flag == &kFlags.back() ? "" : ", ");
  }
  throw ArgumentError(fmt::format("{} has the key \"{}\"; there are {}", kVariable, key, known));
}

}  // namespace

DeviceLimits parse_device_limits(const std::string& text) {
  DeviceLimits limits;
  for (const std::string& pair : split(text, ',')) {
    const std::size_t sign = pair.find('=');
    CONCORD_CHECK(sign != std::string::npos, ArgumentError, "{}: \"{}\" is no KEY=VALUE", kVariable, pair);
    take(limits, std::string_view(pair).substr(0, sign), std::string_view(pair).substr(sign + 1));
  }
  return limits;
}

DeviceLimits device_limits() {
  DeviceLimits limits = parse_device_limits(environment(kVariable.data()).value_or(""));
  if (environment("CONCORD_PORTABLE").value_or("0") != "0") limits.extensions = false;
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
