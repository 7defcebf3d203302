// PaddedTokens: tokens (…, C) in 16 bits whose C is no multiple of 8, such as the logits of a vocabulary. Each token is
// padded to whole blocks of 8 numbers. The padding is written too, with numbers that are finite where the token's are:
// products multiply it by 0. Only kernels that ask for this layout read it; others get row-major fp32 from a reorder.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "concord/device/kernel.hpp"
#include "concord/opencl/formula/channels_last.hpp"
#include "concord/opencl/launch/context.hpp"

namespace concord::opencl {

class PaddedTokens final : public LayoutDescription {
 public:
  PaddedTokens(Shape shape, DType number) : shape_(std::move(shape)), number_(number) {}
  [[nodiscard]] std::size_t bytes() const override;
  [[nodiscard]] bool equals(const LayoutDescription& other) const override;
  [[nodiscard]] std::string str() const override;
  /// Tokens of as many channels, in any shape.
  [[nodiscard]] Layout viewed_as(const TensorSpec& spec) const override;

  [[nodiscard]] std::int64_t channels() const { return shape_[-1]; }
  [[nodiscard]] std::int64_t tokens() const { return shape_.elements() / channels(); }
  [[nodiscard]] std::int64_t blocks_of_token() const;
  [[nodiscard]] DType number() const { return number_; }

 private:
  Shape shape_;
  DType number_;
};

/// Null where C is a multiple of 8 or so small that the layout is not worth a reorder, or an index is too large.
[[nodiscard]] Layout padded_tokens(const TensorSpec& spec, DType number);
/// Null for another layout.
[[nodiscard]] const PaddedTokens* as_padded_tokens(const Layout& layout);
/// Tokens in 16 bits, padded where they have to be; null where neither is possible.
[[nodiscard]] Layout any_tokens(const TensorSpec& spec, DType number);

/// Device::prepare_reorder between row-major and padded tokens; null for other pairs.
[[nodiscard]] std::unique_ptr<Kernel> prepare_padded_reorder(Context& context, const Layout& from, const Layout& to);

}  // namespace concord::opencl
