// The layout of columns of channels, and the reorder to an image or tokens of their own.
#include "concord/opencl/formula/channel_columns.hpp"

#include <algorithm>

#include "concord/opencl/launch/blocking.hpp"
#include "concord/opencl/launch/sizes.hpp"

namespace concord::opencl {

Layout ChannelsLast::sliced(std::span<const std::int64_t> start, const TensorSpec& spec) const {
  const std::size_t cut = is_tokens() ? shape_.rank() - 1 : 1;
  for (std::size_t axis = 0; axis < shape_.rank(); ++axis) {
    if (axis != cut && spec.shape[axis] != shape_[axis]) return nullptr;
  }
  const bool is_cut_by_blocks = number_ != DType::i32 && start[cut] % kBlock == 0;
  Layout own = is_cut_by_blocks ? channels_last(spec, number_, axis_) : nullptr;
  if (own == nullptr) return nullptr;
  return std::make_shared<ChannelColumns>(std::move(own), spec.shape[cut], channels(), start[cut]);
}

bool ChannelColumns::equals(const LayoutDescription& other) const {
  const auto* same = dynamic_cast<const ChannelColumns*>(&other);
  return same != nullptr && same_layout(same->own_, own_) && same->columns_ == columns_ && same->pitch_ == pitch_ &&
         same->begin_ == begin_;
}

Layout ChannelColumns::viewed_as(const TensorSpec& spec) const {
  std::int64_t columns = 1;
  for (std::size_t i = spec.shape.rank(); i > 0 && columns < columns_; --i) columns *= spec.shape[i - 1];
  Layout own = axis() == ChannelAxis::last && columns == columns_ ? channels_last(spec, number(), axis()) : nullptr;
  return own != nullptr ? std::make_shared<ChannelColumns>(std::move(own), columns_, pitch_, begin_) : nullptr;
}

const ChannelColumns* as_channel_columns(const Layout& layout) {
  return dynamic_cast<const ChannelColumns*>(layout.get());
}

Layout as_operand(const Layout& layout, const Layout& own) {
  const ChannelColumns* const columns = as_channel_columns(layout);
  return columns != nullptr && same_layout(columns->own(), own) ? layout : own;
}

KernelRequest without_columns(KernelRequest request, std::size_t inputs) {
  for (std::size_t i = 0; i < std::min(inputs, request.input_layouts.size()); ++i) {
    if (const ChannelColumns* const columns = as_channel_columns(request.input_layouts[i])) {
      request.input_layouts[i] = Layout(columns->own());
    }
  }
  return request;
}

std::unique_ptr<Kernel> prepare_columns_reorder(Context& context, const Layout& from, const Layout& to) {
  const ChannelColumns* const columns = as_channel_columns(from);
  if (columns == nullptr || (to != nullptr && !same_layout(columns->own(), to))) return nullptr;
  if (to == nullptr && columns->axis() == ChannelAxis::second) {
    return prepare_image_to_rows(context, *as_channels_last(columns->own()), columns->pitch(), columns->begin());
  }
  constexpr std::int64_t kBlock = ChannelsLast::kBlock;
  const std::int64_t blocks = columns->columns() / kBlock, count = columns->rows() * blocks;
  std::vector<Argument> arguments{blocks_of(input(0)), blocks_of(output(0))};
  for (const std::int64_t value : {count, blocks, columns->pitch() / kBlock, columns->begin() / kBlock}) {
    arguments.emplace_back(as_uint(value));
  }
  Stage stage{context.program("formula/channels_last.cl", reorder_definitions(context, columns->number())),
              to != nullptr ? "channels_last_slice" : "channel_columns_to_floats", std::move(arguments)};
  blocking_of(context.limits(), count, 1).apply(stage);
  return std::make_unique<StagedKernel>(context, to != nullptr ? "columns to blocks" : "columns to row-major",
                                        std::vector<StagedKernel::AnyStage>{std::move(stage)});
}

}  // namespace concord::opencl
