// The order of the GEMM implementations, and the choice by expected time.
#include "concord/opencl/gemm/registry.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "concord/core/log.hpp"
#include "concord/opencl/gemm/implementation.hpp"
#include "concord/opencl/launch/alternatives.hpp"

namespace concord::opencl {

extern const GemmImplementation kPanelGemm, kScaledGemm, kTmaGemm, kWgmmaGemm, kMmaGemm, kWaveGemm, kTiledGemm,
    kClblastGemm, kReferenceGemm;

namespace {

constexpr std::array<const GemmImplementation*, 9> kImplementations{&kPanelGemm, &kScaledGemm,  &kTmaGemm,
                                                                    &kWgmmaGemm, &kMmaGemm,     &kWaveGemm,
                                                                    &kTiledGemm, &kClblastGemm, &kReferenceGemm};

/// Without the check on the device.
std::string_view cheap_refusal(const GemmImplementation& one, const Context& context, const Gemm& gemm) {
  if (!context.variants().may(std::string(variant::kProduct) + std::string(one.name))) return "it is disabled";
  if (gemm.has_channels_last() && !one.reads_channels_last) return "an operand or the result lies channels-last";
  return one.refusal(context, gemm);
}

/// What the log says of a choice: "a card: 64 x 1000 x 784 product in fp32 by "tiled"; not by "mma": a size is below 8;
/// …".
class ChoiceLog {
 public:
  ChoiceLog(const Context& context, bool is_wanted)
      : context_(context), is_heard_(is_wanted && log_enabled(LogLevel::debug)) {}
  void refused(const GemmImplementation& one, std::string_view why) {
    if (!is_heard_) return;
    const bool is_for_device = one.is_variant_of(context_) || &one == &kReferenceGemm;
    text_ += fmt::format("; not by \"{}\": {}", one.name, is_for_device ? why : "not for this device");
  }
  void slower(const GemmImplementation& one, double seconds) {
    if (!is_heard_) return;
    refused(one, std::isfinite(seconds) ? fmt::format("{:.3g} ms are expected", seconds * 1e3) : "slower");
  }
  void write(const Gemm& gemm, const GemmImplementation& chosen) const {
    if (!is_heard_) return;
    log(LogLevel::debug, fmt::format("{}: {} x {} x {} product in {} by \"{}\"{}", context_.name(), gemm.m, gemm.n,
                                     gemm.k, name_of(gemm.precision), chosen.name, text_));
  }

 private:
  const Context& context_;
  bool is_heard_;
  std::string text_;
};

const GemmImplementation& planned(Context& context, const Gemm& gemm, ChoiceLog choice) {
  struct Expected {
    double seconds;
    const GemmImplementation* one;
  };
  std::vector<Expected> expected;
  for (const GemmImplementation* one : kImplementations) {
    if (const std::string_view why = cheap_refusal(*one, context, gemm); !why.empty()) {
      choice.refused(*one, why);
    } else {
      expected.push_back({one->seconds(context, gemm), one});
    }
  }
  std::ranges::stable_sort(expected, {}, &Expected::seconds);
  // Only tma reads what lies channels-last, and nothing lies so where tma does not run.
  const GemmImplementation* chosen = nullptr;
  for (const Expected& next : expected) {
    if (chosen != nullptr) {
      choice.slower(*next.one, next.seconds);
    } else if (const std::string_view why = next.one->device_refusal(context, gemm.precision); why.empty()) {
      chosen = next.one;
    } else {
      choice.refused(*next.one, why);
    }
  }
  if (chosen == nullptr) chosen = gemm.has_channels_last() ? &kTmaGemm : &kReferenceGemm;
  choice.write(gemm, *chosen);
  return *chosen;
}

}  // namespace

std::span<const GemmImplementation* const> gemm_implementations() { return kImplementations; }

const GemmImplementation* find_gemm_implementation(std::string_view name) {
  const auto* const found = std::ranges::find(kImplementations, name, &GemmImplementation::name);
  return found == kImplementations.end() ? nullptr : *found;
}

std::string gemm_implementation_names() {
  std::string names;
  for (const GemmImplementation* one : kImplementations) {
    if (one != kImplementations.front()) names += one == kImplementations.back() ? " and " : ", ";
    names += one->name;
  }
  return names;
}

std::string gemm_refusal(const GemmImplementation& one, Context& context, const Gemm& gemm) {
  std::string_view why = cheap_refusal(one, context, gemm);
  if (why.empty()) why = one.device_refusal(context, gemm.precision);
  return std::string(why);
}

const GemmImplementation& planned_implementation(Context& context, const Gemm& gemm) {
  return planned(context, gemm, ChoiceLog(context, true));
}

double planned_seconds(Context& context, const Gemm& gemm) {
  return planned(context, gemm, ChoiceLog(context, false)).seconds(context, gemm);
}

}  // namespace concord::opencl
