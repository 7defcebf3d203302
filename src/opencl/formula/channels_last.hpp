// ChannelsLast: a tensor (N, C, …) stored as (N, …, C), its values as numbers of 16 bits. So images lie between the
// kernels of a program in bf16 or fp16 on devices whose products are fed by the copy engine (gemm/hopper/tma.cpp), which
// gathers patches from nothing else: no operand is packed, and memory-bound kernels move half the bytes. Products begin
// it; what works element by element or channel by channel passes it on; others get row-major fp32 from a reorder.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "concord/device/kernel.hpp"
#include "concord/opencl/formula/epilogue.hpp"
#include "concord/opencl/launch/stage.hpp"

namespace concord::opencl {

class ChannelsLast final : public LayoutDescription {
 public:
  /// The kernels read and write blocks of so many channels, 16 bytes; C is a multiple of it.
  static constexpr std::int64_t kBlock = 8;

  ChannelsLast(Shape shape, DType number) : shape_(std::move(shape)), number_(number) {}
  [[nodiscard]] std::size_t bytes() const override;
  [[nodiscard]] bool equals(const LayoutDescription& other) const override;
  [[nodiscard]] std::string str() const override;

  /// bf16 or f16 of floats; i32 of indices.
  [[nodiscard]] DType number() const { return number_; }
  [[nodiscard]] std::int64_t images() const { return shape_[0]; }
  [[nodiscard]] std::int64_t channels() const { return shape_[1]; }
  [[nodiscard]] std::int64_t places() const { return shape_.elements() / (images() * channels()); }
  /// Places of all images.
  [[nodiscard]] std::int64_t rows() const { return images() * places(); }
  [[nodiscard]] std::int64_t blocks() const { return shape_.elements() / kBlock; }

 private:
  Shape shape_;
  DType number_;
};

/// How floats are stored in this layout: f16 with fp16, otherwise bf16.
[[nodiscard]] DType storage_number(Precision precision);
/// What a tensor is in that layout; null where it cannot be: C is no multiple of kBlock, or an index has no room.
[[nodiscard]] Layout channels_last(const TensorSpec& spec, DType number);
/// The description if it is one of these.
[[nodiscard]] const ChannelsLast* as_channels_last(const Layout& layout);
/// The first input that lies channels-last; null where none does.
[[nodiscard]] const ChannelsLast* first_channels_last(const KernelRequest& request);

/// The definitions of channels_last.h for a kind of number.
[[nodiscard]] std::vector<std::string> number_definitions(Context& context, DType number);

/// An operand of 16-byte blocks.
[[nodiscard]] inline BufferArgument blocks_of(BufferArgument operand) {
  operand.element_size = 16;
  return operand;
}

/// Device::prepare_reorder between row-major and this layout. Throws NotSupported for other pairs.
[[nodiscard]] std::unique_ptr<Kernel> prepare_channels_last_reorder(Context& context, const TensorSpec& spec,
                                                                    const Layout& from, const Layout& to);

/// Numbers of the inputs, or outputs, that have the shape of the first output.
[[nodiscard]] std::vector<std::size_t> like_result(const KernelRequest& request, std::span<const TensorSpec> specs);
/// The answer of a kernel whose inputs and outputs of these numbers lie channels-last, floats as the request's
/// precision stores them; each must be able to.
[[nodiscard]] PreparedKernel prepared_channels_last(const KernelRequest& request, std::unique_ptr<Kernel> kernel,
                                                    std::span<const std::size_t> inputs,
                                                    std::span<const std::size_t> outputs);

// channels_last_operands.cpp
/// Operands of an expression that a kernel computes block by block: those of the result's shape lie as it does, the
/// others are one number, or one for each channel, or for each image and channel, in row-major order.
struct BlockOperands {
  std::string parameters;  // ", __global const …": for the end of a parameter list
  std::string names;       // ", e1, e1_offset": the same as arguments of a call
  /// Declares float x1[8], … of the block `at` in `image` from `channel` on: of operands of the result's shape (by
  /// their numbers in `whole`), and of the others.
  std::string whole_reads, small_reads;
  std::vector<std::size_t> whole;
  std::vector<Argument> arguments;
};
/// Of inputs [first, end) of the request, called x<first_name>, …; nothing where one is of another kind.
[[nodiscard]] std::optional<BlockOperands> block_operands(const KernelRequest& request, std::size_t first,
                                                          std::size_t first_name);
/// An epilogue for kernels that finish blocks: EPILOGUE_PARAMETERS and EPILOGUE_BLOCK(values, at, image, channel),
/// which changes eight floats in place.
[[nodiscard]] std::optional<EpilogueText> block_epilogue(const KernelRequest& request, const Epilogue& epilogue);

}  // namespace concord::opencl
