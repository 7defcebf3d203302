// What this backend may do in two ways, and which of them `concord doctor` found wrong. Used where operators are fused.
#pragma once

#include <atomic>
#include <map>
#include <mutex>

#include "concord/device/quirk_file.hpp"
#include "concord/device/variants.hpp"

namespace concord::cpu {

enum class Product : std::uint8_t { matmul, convolution };

/// oneDNN's post-operations behind matrix products and behind convolutions; without them an epilogue is a pass of our
/// own.
class CpuVariants final : public Variants {
 public:
  explicit CpuVariants(QuirkOrigin origin);

  /// Whether post-operations behind this kind of product are not marked; counted.
  [[nodiscard]] bool takes_post_ops(Product product);

  [[nodiscard]] std::vector<Variant> list() const override;
  /// Each is taken wherever it can serve.
  void prefer(std::string_view name) override;
  [[nodiscard]] std::int64_t uses(std::string_view name) const override;
  void mark(std::string_view name, std::string quirk) override;
  [[nodiscard]] std::filesystem::path file() const override { return quirk_file(origin_); }
  void store() const override { write_quirks(origin_, quirks_); }
  std::size_t forget() override;

 private:
  void require_known(std::string_view name) const;

  QuirkOrigin origin_;
  mutable std::mutex mutex_;
  Quirks quirks_;
  std::map<std::string, std::int64_t, std::less<>> uses_;
};

}  // namespace concord::cpu
