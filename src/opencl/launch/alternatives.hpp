// OpenClAlternatives: the kernel alternatives of one OpenCL device, and which of them are disabled, preferred and used.
// Owned by Context. Each family asks it before it chooses a kernel.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "concord/device/denylist.hpp"
#include "concord/device/kernel_alternatives.hpp"

namespace concord::opencl {

/// Names of alternatives: "product " followed by the name of a GEMM implementation, and the names below.
namespace alternative {
inline constexpr std::string_view kProduct = "product ";
inline constexpr std::string_view kDepthwise = "convolution depthwise";
inline constexpr std::string_view kStrips = "convolution depthwise strips";
inline constexpr std::string_view kPhases = "convolution phases";
inline constexpr std::string_view kWinograd = "convolution winograd";
inline constexpr std::string_view kChannelsLast = "layout channels-last";
inline constexpr std::string_view kTokensProduct = "tokens product";
inline constexpr std::string_view kAttentionWgmma = "attention wgmma";
inline constexpr std::string_view kAttentionMma = "attention mma";
inline constexpr std::string_view kBatchNormWhole = "batch_norm whole";
inline constexpr std::string_view kBatchNormGroups = "batch_norm groups";
inline constexpr std::string_view kBatchNormResident = "batch_norm resident";
inline constexpr std::string_view kBatchNormRuns = "batch_norm runs";
inline constexpr std::string_view kRecurrentStep = "recurrent step";
inline constexpr std::string_view kRecurrentPersistent = "recurrent persistent";
inline constexpr std::string_view kForCpus = "kernels for CPUs";
inline constexpr std::string_view kForGpus = "kernels for GPUs";
}  // namespace alternative

class OpenClAlternatives final : public KernelAlternatives {
 public:
  /// An alternative of the device, and the family whose checks cover it.
  struct Name {
    std::string name;
    std::string_view family;
  };
  /// Reads the device's denylist and logs its entries. Calls `changed` when the choice of kernels may change.
  OpenClAlternatives(DenylistOrigin origin, std::function<void()> changed);
  /// `names` returns the alternatives of the device; before this call there are none.
  void set_names(std::function<std::vector<Name>()> names) { names_ = std::move(names); }

  [[nodiscard]] bool is_enabled(std::string_view name) const { return !denylist_.contains(name); }
  /// Whether the family should use this kernel, which supports the operator; `planned` is the family's own choice.
  /// Counts the use.
  [[nodiscard]] bool should_use(std::string_view name, bool planned);
  /// Whether the family should use the first of two kernels; `planned` is the family's own choice.
  [[nodiscard]] bool prefers_first(std::string_view first, std::string_view second, bool planned) const;
  /// The same; also counts the use.
  [[nodiscard]] bool should_use_first(std::string_view first, std::string_view second, bool planned);
  /// The preferred alternative without `begin`, if its name starts with `begin` and it is enabled.
  [[nodiscard]] std::optional<std::string> preferred(std::string_view begin) const;
  void count(std::string_view name) { ++uses_[std::string(name)]; }

  [[nodiscard]] std::vector<KernelAlternative> list() const override;
  void prefer(std::string_view name) override;
  [[nodiscard]] std::int64_t uses(std::string_view name) const override;
  void disable(std::string_view name, std::string reason) override;
  [[nodiscard]] std::filesystem::path file() const override;
  void store() const override;
  std::size_t forget() override;

 private:
  void require_known(std::string_view name) const;

  DenylistOrigin origin_;
  std::function<void()> changed_;
  std::function<std::vector<Name>()> names_ = [] { return std::vector<Name>{}; };
  Denylist denylist_;
  std::string preferred_;
  std::map<std::string, std::int64_t, std::less<>> uses_;
};

}  // namespace concord::opencl
