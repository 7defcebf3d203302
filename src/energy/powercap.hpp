// The energy counters of processors that the Linux kernel shows as files (RAPL).
#pragma once

#include <filesystem>
#include <memory>

#include "concord/energy/meter.hpp"

namespace concord {

/// The sum over all processors (intel-rapl:0, intel-rapl:1, …) under `folder`, with cores and caches but without
/// memory. Null if this process may read none of them.
[[nodiscard]] std::unique_ptr<EnergyMeter> powercap_meter(const std::filesystem::path& folder);

}  // namespace concord
