// The kernel alternatives of this backend. Used where operators are fused.
#pragma once

#include <atomic>
#include <map>
#include <mutex>

#include "concord/device/denylist.hpp"
#include "concord/device/kernel_alternatives.hpp"

namespace concord::cpu {

enum class Product : std::uint8_t { matmul, convolution };

/// oneDNN's post-operations after matrix multiplications and after convolutions. Without them an epilogue is a separate
/// pass of our own.
class CpuAlternatives final : public KernelAlternatives {
 public:
  explicit CpuAlternatives(DenylistOrigin origin);

  /// Whether post-operations after this kind of product are enabled. Counts the use.
  [[nodiscard]] bool should_use_post_ops(Product product);

  [[nodiscard]] std::vector<KernelAlternative> list() const override;
  /// Does nothing: each alternative is used wherever it supports the operator.
  void prefer(std::string_view name) override;
  [[nodiscard]] std::int64_t uses(std::string_view name) const override;
  void disable(std::string_view name, std::string reason) override;
  [[nodiscard]] std::filesystem::path file() const override { return denylist_file(origin_); }
  void store() const override;
  std::size_t forget() override;

 private:
  void require_known(std::string_view name) const;

  DenylistOrigin origin_;
  mutable std::mutex mutex_;
  Denylist denylist_;
  std::map<std::string, std::int64_t, std::less<>> uses_;
};

}  // namespace concord::cpu
