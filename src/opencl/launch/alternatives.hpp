// KernelVariants: which way to compute the kernels of one OpenCL device take, where there are several. Owned by
// Context; asked wherever a family chooses.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "concord/device/quirk_file.hpp"
#include "concord/device/variants.hpp"

namespace concord::opencl {

/// Names of variants: "product " and the name of a GEMM implementation, and these.
namespace variant {
inline constexpr std::string_view kProduct = "product ";
inline constexpr std::string_view kDepthwise = "convolution depthwise";
inline constexpr std::string_view kStrips = "convolution depthwise strips";
inline constexpr std::string_view kPhases = "convolution phases";
inline constexpr std::string_view kWinograd = "convolution winograd";
inline constexpr std::string_view kChannelsLast = "layout channels-last";
inline constexpr std::string_view kAttentionMma = "attention mma";
inline constexpr std::string_view kBatchNormGroups = "batch_norm groups";
inline constexpr std::string_view kBatchNormRuns = "batch_norm runs";
inline constexpr std::string_view kRecurrentStep = "recurrent step";
inline constexpr std::string_view kForCpus = "kernels for CPUs";
inline constexpr std::string_view kForGpus = "kernels for GPUs";
}  // namespace variant

class KernelVariants final : public Variants {
 public:
  /// A variant that a device has, and the family whose tests tell whether it is right.
  struct Name {
    std::string name;
    std::string_view family;
  };
  /// With the marks of the device's quirk file, which the log names. `changed` is called when what is taken may have
  /// changed.
  KernelVariants(QuirkOrigin origin, std::function<void()> changed);
  /// What `list` asks for the variants that there are now; none are known before.
  void set_names(std::function<std::vector<Name>()> names) { names_ = std::move(names); }

  /// Whether it is not marked.
  [[nodiscard]] bool may(std::string_view name) const { return !quirks_.contains(name); }
  /// Whether it is to be taken by a kernel that it can serve; counted.
  [[nodiscard]] bool takes(std::string_view name, bool planned);
  /// Whether the first of two ways is to be taken.
  [[nodiscard]] bool prefers_first(std::string_view first, std::string_view second, bool planned) const;
  /// The same; counted.
  [[nodiscard]] bool takes_first(std::string_view first, std::string_view second, bool planned);
  /// The preferred variant of those that begin so, without that begin, where it is not marked.
  [[nodiscard]] std::optional<std::string> preferred(std::string_view begin) const;
  void count(std::string_view name) { ++uses_[std::string(name)]; }

  [[nodiscard]] std::vector<Variant> list() const override;
  void prefer(std::string_view name) override;
  [[nodiscard]] std::int64_t uses(std::string_view name) const override;
  void mark(std::string_view name, std::string quirk) override;
  [[nodiscard]] std::filesystem::path file() const override;
  void store() const override;
  std::size_t forget() override;

 private:
  void require_known(std::string_view name) const;

  QuirkOrigin origin_;
  std::function<void()> changed_;
  std::function<std::vector<Name>()> names_ = [] { return std::vector<Name>{}; };
  Quirks quirks_;
  std::string preferred_;
  std::map<std::string, std::int64_t, std::less<>> uses_;
};

}  // namespace concord::opencl
