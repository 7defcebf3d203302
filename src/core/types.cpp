// Element types and precisions: sizes and names.
#include "concord/core/types.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "concord/core/error.hpp"

namespace concord {
namespace {

struct PrecisionInfo {
  Precision precision;
  std::string_view name;
  double unit;
};
constexpr std::array<PrecisionInfo, 4> kPrecisions{{{Precision::fp32, "fp32", 0x1p-24},
                                                    {Precision::tf32, "tf32", 0x1p-11},
                                                    {Precision::bf16, "bf16", 0x1p-8},
                                                    {Precision::fp16, "fp16", 0x1p-11}}};
const PrecisionInfo& info_of(Precision precision) { return kPrecisions.at(static_cast<std::size_t>(precision)); }

}  // namespace

std::string_view name_of(Precision precision) { return info_of(precision).name; }
double unit_of(Precision precision) { return info_of(precision).unit; }

Precision precision_of(std::string_view name) {
  const auto* const found = std::ranges::find(kPrecisions, name, &PrecisionInfo::name);
  if (found != kPrecisions.end()) return found->precision;
  throw ArgumentError(fmt::format("there is no precision '{}'; there are fp32, tf32, bf16 and fp16", name));
}

std::size_t size_of(DType type) {
  switch (type) {
    case DType::f32:
    case DType::i32: return 4;
    case DType::f16:
    case DType::bf16: return 2;
    case DType::u8: return 1;
  }
  throw Error("unknown element type");
}

std::string_view name_of(DType type) {
  switch (type) {
    case DType::f32: return "f32";
    case DType::f16: return "f16";
    case DType::bf16: return "bf16";
    case DType::i32: return "i32";
    case DType::u8: return "u8";
  }
  throw Error("unknown element type");
}

}  // namespace concord
