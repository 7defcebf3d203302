// TokenColumns: some of the channels of wider tokens in 16 bits, where they lie: what a slice of a projection to q, k
// and v gives without a copy. Attention reads this layout; other kernels get tokens of their own from a reorder.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "concord/device/kernel.hpp"
#include "concord/opencl/formula/channels_last.hpp"
#include "concord/opencl/launch/context.hpp"

namespace concord::opencl {

class TokenColumns final : public LayoutDescription {
 public:
  /// `columns` numbers of each token of `pitch` numbers, from number `begin` on. All three are multiples of
  /// ChannelsLast::kBlock; the last axes of `shape` make `columns` elements.
  TokenColumns(Shape shape, DType number, std::int64_t columns, std::int64_t pitch, std::int64_t begin)
      : shape_(std::move(shape)), number_(number), columns_(columns), pitch_(pitch), begin_(begin) {}
  /// The bytes of the columns, without what lies between them.
  [[nodiscard]] std::size_t bytes() const override;
  [[nodiscard]] bool equals(const LayoutDescription& other) const override;
  [[nodiscard]] std::string str() const override;
  /// The columns, or the tokens, divided into more axes.
  [[nodiscard]] Layout viewed_as(const TensorSpec& spec) const override;

  [[nodiscard]] std::int64_t tokens() const { return shape_.elements() / columns_; }
  [[nodiscard]] std::int64_t columns() const { return columns_; }
  [[nodiscard]] std::int64_t pitch() const { return pitch_; }
  [[nodiscard]] std::int64_t begin() const { return begin_; }
  [[nodiscard]] DType number() const { return number_; }
  [[nodiscard]] std::size_t begin_bytes() const { return static_cast<std::size_t>(begin_) * size_of(number_); }
  /// Tokens of the same shape that lie side by side.
  [[nodiscard]] Layout compact() const;

 private:
  Shape shape_;
  DType number_;
  std::int64_t columns_, pitch_, begin_;
};

/// Null for another layout.
[[nodiscard]] const TokenColumns* as_token_columns(const Layout& layout);
/// The request with tokens of their own instead of columns.
[[nodiscard]] KernelRequest without_columns(KernelRequest request);
/// Device::prepare_reorder from columns to tokens of their own or to row-major; null for other pairs.
[[nodiscard]] std::unique_ptr<Kernel> prepare_columns_reorder(Context& context, const Layout& from, const Layout& to);
}  // namespace concord::opencl
