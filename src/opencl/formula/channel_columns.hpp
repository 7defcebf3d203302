// ChannelColumns: some of the channels of a wider image, or of wider tokens, in 16 bits, where they lie. A slice of channels
// is such columns, without a copy; the wider tensor stays in memory as long as its columns are read. Attention and the
// operands of expressions (block_operands) read this layout; other kernels get an image or tokens of their own from a
// reorder.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "concord/device/kernel.hpp"
#include "concord/opencl/formula/channels_last.hpp"
#include "concord/opencl/launch/context.hpp"

namespace concord::opencl {

class ChannelColumns final : public LayoutDescription {
 public:
  /// `columns` numbers of each row of `pitch` numbers, from number `begin` on. All three are multiples of
  /// ChannelsLast::kBlock. `own` is the layout of the same tensor as an image, or as tokens, of its own; the columns
  /// are its channels or, of tokens, its last axes.
  ChannelColumns(Layout own, std::int64_t columns, std::int64_t pitch, std::int64_t begin)
      : own_(std::move(own)), columns_(columns), pitch_(pitch), begin_(begin) {}
  /// The bytes of the columns, without what lies between them.
  [[nodiscard]] std::size_t bytes() const override { return own_->bytes(); }
  [[nodiscard]] bool equals(const LayoutDescription& other) const override;
  [[nodiscard]] std::string str() const override { return "columns of " + own_->str(); }
  /// The columns, or the tokens, divided into more axes.
  [[nodiscard]] Layout viewed_as(const TensorSpec& spec) const override;

  [[nodiscard]] const Layout& own() const { return own_; }
  [[nodiscard]] ChannelAxis axis() const { return as_channels_last(own_)->axis(); }
  [[nodiscard]] DType number() const { return as_channels_last(own_)->number(); }
  [[nodiscard]] std::int64_t rows() const { return as_channels_last(own_)->blocks() * ChannelsLast::kBlock / columns_; }
  [[nodiscard]] std::int64_t columns() const { return columns_; }
  [[nodiscard]] std::int64_t pitch() const { return pitch_; }
  [[nodiscard]] std::int64_t begin() const { return begin_; }
  [[nodiscard]] std::size_t begin_bytes() const { return static_cast<std::size_t>(begin_) * size_of(number()); }

 private:
  Layout own_;
  std::int64_t columns_, pitch_, begin_;
};

/// Null for another layout.
[[nodiscard]] const ChannelColumns* as_channel_columns(const Layout& layout);
/// How a kernel reads an operand of an expression that lies in `layout`: as the columns of `own` that it is, or as
/// `own`.
[[nodiscard]] Layout as_operand(const Layout& layout, const Layout& own);
/// The request with images and tokens of their own instead of columns, in its first `inputs` inputs.
[[nodiscard]] KernelRequest without_columns(KernelRequest request, std::size_t inputs = SIZE_MAX);
/// Device::prepare_reorder from columns to an image or tokens of their own, or to row-major; null for other pairs.
[[nodiscard]] std::unique_ptr<Kernel> prepare_columns_reorder(Context& context, const Layout& from, const Layout& to);

}  // namespace concord::opencl
