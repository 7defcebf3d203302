// The generations of GPUs. Multiply-adds per cycle: NVIDIA, CUDA C++ programming guide, throughput of arithmetic
// instructions, and the architectures' white papers; AMD, instruction set documents and data sheets of Instinct and
// Radeon; Intel, the architecture pages of Xe. Bandwidth per unit: 0.83 of the specified bandwidth of the largest card
// of a generation, divided by its units. The H200 reaches that share.
#include "concord/opencl/driver/gpu_model.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "concord/core/check.hpp"

namespace concord::opencl {
namespace {

struct Generation {
  std::string_view name;
  double products, matrix, matrix_fp32;  // per unit and cycle
  double gigabytes;                      // per unit and second
  std::int64_t local_kib, item_registers;
  bool has_shallow_tiles;
};

struct NvidiaGeneration {
  Capability from;
  Generation generation;
};
// A capability selects the first row of its major number that it reaches. The rate of mma.sync was measured on Hopper;
// data-center Blackwell is assumed to have the same rate.
constexpr std::array<NvidiaGeneration, 10> kNvidia{{
    {{12, 0}, {"NVIDIA Blackwell", 128, 256, 128, 8.7, 100, 128, false}},
    {{10, 0}, {"NVIDIA Blackwell, data center", 128, 1232, 616, 45, 228, 128, false}},
    {{9, 0}, {"NVIDIA Hopper", 128, 1232, 616, 30.303, 228, 128, false}},
    {{8, 9}, {"NVIDIA Ada", 128, 256, 128, 6.6, 100, 128, false}},
    {{8, 6}, {"NVIDIA Ampere", 128, 256, 128, 9.5, 100, 128, false}},
    {{8, 0}, {"NVIDIA Ampere, data center", 64, 1024, 512, 14, 164, 128, false}},
    {{7, 5}, {"NVIDIA Turing", 64, 0, 0, 7.5, 64, 128, false}},
    {{7, 0}, {"NVIDIA Volta", 64, 0, 0, 9.4, 96, 128, false}},
    {{6, 1}, {"NVIDIA Pascal", 128, 0, 0, 14, 96, 128, false}},
    {{6, 0}, {"NVIDIA Pascal, data center", 64, 0, 0, 10.7, 64, 128, false}},
}};

// The rates do not count the packed and dual-issue instructions of CDNA 2, RDNA 3 and later: compilers rarely use them.
struct AmdGeneration {
  std::string_view processor, codename;  // AMD's names begin with the first, Mesa's contain the second
  Generation generation;                 // of a compute unit
  bool has_processors;                   // AMD's driver counts processors of two compute units
};
constexpr std::array<AmdGeneration, 9> kAmd{{
    {"gfx12", "navi4", {"AMD RDNA 4", 64, 512, 0, 8.3, 64, 128, true}, true},
    {"gfx11", "navi3", {"AMD RDNA 3", 64, 256, 0, 8.3, 64, 128, true}, true},
    {"gfx103", "navi2", {"AMD RDNA 2", 64, 0, 0, 5.3, 64, 128, true}, true},
    {"gfx10", "navi1", {"AMD RDNA", 64, 0, 0, 9.3, 64, 128, true}, true},
    {"gfx95", "", {"AMD CDNA 4", 64, 2048, 128, 26, 160, 128, true}, false},
    {"gfx94", "", {"AMD CDNA 3", 64, 1024, 128, 14.5, 64, 128, true}, false},
    {"gfx90a", "aldebaran", {"AMD CDNA 2", 64, 512, 128, 12.4, 64, 128, true}, false},
    {"gfx908", "arcturus", {"AMD CDNA", 64, 512, 128, 8.5, 64, 128, true}, false},
    {"gfx9", "vega", {"AMD GCN 5", 64, 0, 0, 10, 64, 128, true}, false},
}};

struct IntelGeneration {
  Generation generation;
  std::int64_t engines;  // of a core
};
// A thread of a vector engine has 128 registers of 32 bytes, of 64 bytes on Xe-HPC and Xe2, for eight or sixteen items.
constexpr IntelGeneration kXeLp{{"Intel Xe-LP", 128, 0, 0, 9.4, 64, 96, true}, 16};
constexpr IntelGeneration kXeHpg{{"Intel Xe-HPG", 128, 1024, 0, 14.5, 64, 96, true}, 16};
constexpr IntelGeneration kXeHpc{{"Intel Xe-HPC", 128, 2048, 0, 21, 128, 128, true}, 8};
constexpr IntelGeneration kXe2{{"Intel Xe2", 128, 1024, 0, 19, 128, 128, true}, 8};

constexpr Generation kUnknown{"unknown", 128, 1232, 616, 30.303, 228, 128, false};

bool contains(std::string_view text, std::string_view part) {
  return !part.empty() && text.find(part) != std::string_view::npos;
}

std::optional<Generation> nvidia_generation(Capability capability) {
  const auto* const found = std::ranges::find_if(kNvidia, [&](const NvidiaGeneration& one) {
    return capability.major == one.from.major && capability.minor >= one.from.minor;
  });
  if (found != kNvidia.end()) return found->generation;
  return std::nullopt;
}

const AmdGeneration* amd_generation(const GpuFacts& facts) {
  const bool is_amd = facts.is_gpu && (contains(facts.vendor, "Advanced Micro Devices") || facts.vendor == "AMD");
  const auto* const found = std::ranges::find_if(kAmd, [&](const AmdGeneration& one) {
    return facts.name.starts_with(one.processor) || contains(facts.name, one.codename);
  });
  return is_amd && found != kAmd.end() ? found : nullptr;
}

const IntelGeneration& intel_generation(const GpuFacts& facts) {
  if (facts.wave_units == WaveUnits::dpas_8) return kXeHpg;
  if (facts.wave_units == WaveUnits::dpas_16) return contains(facts.name, "Data Center GPU Max") ? kXeHpc : kXe2;
  return kXeLp;
}

GpuModel model_of(const Generation& one, const GpuFacts& facts, std::int64_t units, std::int64_t times) {
  constexpr std::int64_t kTypicalMegahertz = 1500;  // where a driver does not report it
  const double several = static_cast<double>(times);
  const double cycles = 1e6 * several * static_cast<double>(facts.megahertz > 0 ? facts.megahertz : kTypicalMegahertz);
  return {.generation = one.name,
          .units = std::max<std::int64_t>(1, units),
          .products_a_second = one.products * cycles,
          .matrix_a_second = one.matrix * cycles,
          .matrix_fp32_a_second = one.matrix_fp32 * cycles,
          .bytes_a_second = one.gigabytes * 1e9 * several * static_cast<double>(units),
          .local_memory = one.local_kib * 1024 * times,
          .item_registers = one.item_registers,
          .has_shallow_tiles = one.has_shallow_tiles};
}

struct IntelName {
  std::string_view name, device;
  WaveUnits wave_units;
};
constexpr std::array<IntelName, 4> kIntelNames{{{"xe-lp", "Iris(R) Xe Graphics", WaveUnits::none},
                                                {"xe-hpg", "Arc(TM) A770 Graphics", WaveUnits::dpas_8},
                                                {"xe-hpc", "Data Center GPU Max 1550", WaveUnits::dpas_16},
                                                {"xe2", "Arc(TM) B580 Graphics", WaveUnits::dpas_16}}};

/// 8.9 for "sm_89", 12.0 for "sm_120"; 0.0 for anything else.
Capability capability_in(std::string_view name) {
  constexpr std::string_view kPrefix = "sm_";
  unsigned number = 0;
  if (!name.starts_with(kPrefix)) return {};
  const char* const end = name.data() + name.size();
  const auto [at, error] = std::from_chars(name.data() + kPrefix.size(), end, number);
  return error == std::errc{} && at == end ? Capability{number / 10, number % 10} : Capability{};
}

}  // namespace

GpuFacts plan_as(std::string_view name, GpuFacts facts) {
  facts = {.name = name, .compute_units = facts.compute_units, .megahertz = facts.megahertz};
  if (name.starts_with("gfx")) facts.vendor = "Advanced Micro Devices, Inc.";
  if (const auto* const intel = std::ranges::find(kIntelNames, name, &IntelName::name); intel != kIntelNames.end()) {
    facts.vendor = "Intel(R) Corporation";
    facts.name = intel->device;
    facts.wave_units = intel->wave_units;
    facts.compute_units *= intel_generation(facts).engines;
  }
  facts.capability = capability_in(name);
  CONCORD_CHECK(
      gpu_model(facts).generation != kUnknown.name, ArgumentError,
      "CONCORD_DEBUG: plan_as is \"{}\"; it must be a GPU name such as gfx1030, sm_89, xe-lp, xe-hpg, xe-hpc or xe2",
      name);
  return facts;
}

GpuModel gpu_model(const GpuFacts& facts) {
  if (const auto nvidia = nvidia_generation(facts.capability)) return model_of(*nvidia, facts, facts.compute_units, 1);
  if (const AmdGeneration* const amd = amd_generation(facts)) {
    const bool counts_processors = amd->has_processors && facts.name.starts_with("gfx");
    return model_of(amd->generation, facts, facts.compute_units, counts_processors ? 2 : 1);
  }
  if (facts.is_gpu && contains(facts.vendor, "Intel")) {
    const IntelGeneration& intel = intel_generation(facts);
    return model_of(intel.generation, facts, facts.compute_units / intel.engines, 1);
  }
  GpuFacts measured = facts;
  measured.megahertz = 1980;
  return model_of(kUnknown, measured, facts.compute_units, 1);
}

}  // namespace concord::opencl
