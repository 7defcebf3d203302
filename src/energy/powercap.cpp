// Microjoule counters, each of which restarts from 0 after a number of its own.
#include "concord/energy/powercap.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <optional>
#include <string_view>
#include <vector>

#include "concord/core/check.hpp"
#include "concord/core/platform.hpp"
#include "concord/energy/number_file.hpp"

namespace concord {
namespace {

struct Counter {
  std::filesystem::path file;
  std::uint64_t range = 0;  // the largest count, after which it restarts from 0
  std::uint64_t last = 0;
};

/// "intel-rapl:0" is a processor (AMD's have the same name). "intel-rapl:0:0" is a part of it; "psys" is more than it.
std::optional<Counter> counter_of(const std::filesystem::path& zone) {
  const std::string name = zone.filename().string();
  const bool is_top = name.starts_with("intel-rapl:") && std::ranges::count(name, ':') == 1;
  std::string kind;
  if (!is_top || !(std::ifstream(zone / "name") >> kind) || !kind.starts_with("package")) return std::nullopt;
  const auto now = number_in(zone / "energy_uj"), range = number_in(zone / "max_energy_range_uj");
  if (!now || !range) return std::nullopt;
  return Counter{zone / "energy_uj", *range, *now};
}

class PowercapMeter final : public EnergyMeter {
 public:
  explicit PowercapMeter(std::vector<Counter> counters) : counters_(std::move(counters)) {}

  [[nodiscard]] double joules() override {
    for (Counter& counter : counters_) {
      const auto now = number_in(counter.file);
      CONCORD_CHECK(now.has_value(), DeviceError, "{} can no longer be read; check its permissions",
                    counter.file.string());
      microjoules_ += *now >= counter.last ? *now - counter.last : *now + counter.range - counter.last;
      counter.last = *now;
    }
    return 1e-6 * static_cast<double>(microjoules_);
  }
  [[nodiscard]] std::string source() const override { return "all of the processors, RAPL"; }

 private:
  std::vector<Counter> counters_;
  std::uint64_t microjoules_ = 0;
};

}  // namespace

std::unique_ptr<EnergyMeter> powercap_meter(const std::filesystem::path& folder) {
  std::vector<Counter> counters;
  for (const std::filesystem::path& zone : paths_in(folder)) {
    if (auto counter = counter_of(zone)) counters.push_back(std::move(*counter));
  }
  return counters.empty() ? nullptr : std::make_unique<PowercapMeter>(std::move(counters));
}

}  // namespace concord
