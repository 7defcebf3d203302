// ChannelsLast: the layout of a tensor whose channels are inside, in 16-bit values: images (N, C, …) stored as (N, …,
// C), and tokens (…, C) stored in their own order. Values between the kernels of a program are stored so, in bf16 or
// fp16, on devices whose matrix multiplications read through the copy engine (gemm/hopper/tma.cpp), which can gather
// patches only from this layout. No operand is packed then, and memory-bound kernels move half the bytes. Matrix
// multiplications introduce the layout, elementwise and per-channel operators keep it, and other operators get
// row-major fp32 from a reorder.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "concord/device/kernel.hpp"
#include "concord/opencl/formula/epilogue.hpp"
#include "concord/opencl/launch/stage.hpp"

namespace concord::opencl {

/// The axis of the channels: of images the second, of tokens the last.
enum class ChannelAxis : std::uint8_t { second, last };

class ChannelsLast final : public LayoutDescription {
 public:
  /// The kernels read and write blocks of this many channels, 16 bytes. C is a multiple of it.
  static constexpr std::int64_t kBlock = 8;

  ChannelsLast(Shape shape, DType number, ChannelAxis axis = ChannelAxis::second)
      : shape_(std::move(shape)), number_(number), axis_(axis) {}
  [[nodiscard]] std::size_t bytes() const override;
  [[nodiscard]] bool equals(const LayoutDescription& other) const override;
  [[nodiscard]] std::string str() const override;
  /// Tokens of any shape whose channels are whole blocks; images of the same number and channels.
  [[nodiscard]] Layout viewed_as(const TensorSpec& spec) const override;
  /// Images as tokens, and tokens as images.
  [[nodiscard]] Layout transposed(std::span<const std::size_t> order, const TensorSpec& spec) const override;
  /// Some blocks of channels: ChannelColumns (channel_columns.cpp).
  [[nodiscard]] Layout sliced(std::span<const std::int64_t> start, const TensorSpec& spec) const override;
  /// Of tokens.
  [[nodiscard]] std::optional<DType> row_major_type() const override;

  [[nodiscard]] ChannelAxis axis() const { return axis_; }
  /// The stored type: bf16 or f16 for floats, i32 for indices.
  [[nodiscard]] DType number() const { return number_; }
  /// Each token counts as an image of one place.
  [[nodiscard]] std::int64_t images() const { return is_tokens() ? shape_.elements() / channels() : shape_[0]; }
  [[nodiscard]] std::int64_t channels() const { return shape_[is_tokens() ? -1 : 1]; }
  [[nodiscard]] std::int64_t places() const { return shape_.elements() / (images() * channels()); }
  /// Positions of all images.
  [[nodiscard]] std::int64_t rows() const { return images() * places(); }
  [[nodiscard]] std::int64_t blocks() const { return shape_.elements() / kBlock; }

 private:
  [[nodiscard]] bool is_tokens() const { return axis_ == ChannelAxis::last; }

  Shape shape_;
  DType number_;
  ChannelAxis axis_;
};

/// The stored type of floats in this layout: f16 for fp16, otherwise bf16.
[[nodiscard]] DType storage_number(Precision precision);
/// The channels-last layout of a tensor. Null where it is not possible: C is not a multiple of kBlock, or an index is
/// too large.
[[nodiscard]] Layout channels_last(const TensorSpec& spec, DType number, ChannelAxis axis = ChannelAxis::second);
/// The layout as ChannelsLast; null for another layout.
[[nodiscard]] const ChannelsLast* as_channels_last(const Layout& layout);
/// The same where it is of images.
[[nodiscard]] const ChannelsLast* as_images(const Layout& layout);
/// The first input in channels-last layout with this axis; null where there is none.
[[nodiscard]] const ChannelsLast* first_channels_last(const KernelRequest& request,
                                                      ChannelAxis axis = ChannelAxis::second);
/// The axis of the channels of the first input in channels-last layout.
[[nodiscard]] std::optional<ChannelAxis> channel_axis(const KernelRequest& request);

/// The definitions for channels_last.h by stored type, and for formulas whose results it stores.
[[nodiscard]] std::vector<std::string> number_definitions(Context& context, DType number);

/// The same, and NUMBERS, for formula/channels_last.cl.
[[nodiscard]] std::vector<std::string> reorder_definitions(Context& context, DType number);

/// An operand of 16-byte blocks.
[[nodiscard]] inline BufferArgument blocks_of(BufferArgument operand) {
  operand.element_size = 16;
  return operand;
}

/// Device::prepare_reorder between row-major and channels-last. Throws NotSupported for other pairs.
[[nodiscard]] std::unique_ptr<Kernel> prepare_channels_last_reorder(Context& context, const TensorSpec& spec,
                                                                    const Layout& from, const Layout& to);

/// From an image, whose places are `pitch` numbers apart and begin at number `begin`, to row-major.
[[nodiscard]] std::unique_ptr<Kernel> prepare_image_to_rows(Context& context, const ChannelsLast& image,
                                                            std::int64_t pitch, std::int64_t begin);

/// Indices of the inputs, or outputs, that have this shape.
[[nodiscard]] std::vector<std::size_t> of_shape(const Shape& shape, std::span<const TensorSpec> specs);
/// Indices of the inputs, or outputs, that have the shape of the first output.
[[nodiscard]] std::vector<std::size_t> like_result(const KernelRequest& request, std::span<const TensorSpec> specs);
// channels_last_operands.cpp
/// The prepared kernel with the given inputs and outputs in channels-last layout, or as the columns that they are; the
/// request's precision determines the stored type of floats. Each of these tensors must support the layout.
[[nodiscard]] PreparedKernel prepared_channels_last(const KernelRequest& request, std::unique_ptr<Kernel> kernel,
                                                    std::span<const std::size_t> inputs,
                                                    std::span<const std::size_t> outputs,
                                                    ChannelAxis axis = ChannelAxis::second);

/// Operands of an expression that a kernel computes block by block. Operands of its shape have its layout. The others
/// are row-major: a scalar, one value per channel, one per image or token, one per image and channel, or the values of
/// a sequence of tokens, which repeat.
struct BlockOperands {
  struct Parameter {
    std::string type, name;
  };
  std::vector<Parameter> parameters;
  [[nodiscard]] std::string parameter_list() const;  // ", __global const … e1, ulong e1_offset"
  [[nodiscard]] std::string argument_list() const;   // ", e1, e1_offset"
  /// Statements that declare float x1[8], … of the operands of other shapes, for the block that starts at `channel` of
  /// `image`.
  std::string small_reads;
  /// An operand of the expression's shape (`whole`): its number, and its block as a text of `at`, the block of the
  /// result.
  struct Whole {
    std::size_t number;
    std::string at;
  };
  std::vector<Whole> whole;
  std::vector<Argument> arguments;
};
/// The inputs [first, end) of the request as block operands of an expression of the shape `whole`, called
/// x<first_name>, …; nothing where an input has another form.
[[nodiscard]] std::optional<BlockOperands> block_operands(const KernelRequest& request, const Shape& whole,
                                                          std::size_t first, std::size_t end, std::size_t first_name,
                                                          ChannelAxis axis);
/// Whether block_operands takes it.
[[nodiscard]] bool is_block_operand(const TensorSpec& spec, const Shape& whole, ChannelAxis axis);
/// An epilogue for kernels that write blocks: EPILOGUE_PARAMETERS and EPILOGUE_BLOCK(values, at, image, channel), which
/// changes the floats of a block in place. Kernels of pairs may use its parts: EPILOGUE_READ(wholes, at) reads 16
/// bytes, from block `at` on, of each of EPILOGUE_WHOLES operands; EPILOGUE_APPLY(values, wholes, image, channel) takes
/// a block of each.
[[nodiscard]] std::optional<EpilogueText> block_epilogue(const KernelRequest& request, const Epilogue& epilogue,
                                                         ChannelAxis axis = ChannelAxis::second);
/// The same for a kernel of several requests that differ in nothing but the memories of their operands. EPILOGUE_BLOCK
/// uses `member`, the number of a request; the inputs follow each other in the order of the requests.
[[nodiscard]] std::optional<EpilogueText> block_epilogue(std::span<const KernelRequest> members,
                                                         const Epilogue& epilogue, ChannelAxis axis);
/// The same of a formula of what is written, whose result is written too: APPENDED_PARAMETERS and APPENDED_BLOCK.
[[nodiscard]] std::optional<EpilogueText> block_appended(const KernelRequest& request, const Epilogue& formula,
                                                         ChannelAxis axis);
/// The same of a prologue: PROLOGUE_PARAMETERS and PROLOGUE_BLOCK. A kernel with several has another `name` for each,
/// and operands called x<first_name>, ….
[[nodiscard]] std::optional<EpilogueText> block_prologue(const KernelRequest& request, const Prologue& prologue,
                                                         ChannelAxis axis, std::string_view name,
                                                         std::size_t first_name);
[[nodiscard]] std::optional<EpilogueText> block_prologue(const KernelRequest& request, const Prologue& prologue,
                                                         ChannelAxis axis);

}  // namespace concord::opencl
