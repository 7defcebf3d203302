// The layout of columns of tokens, and the reorder to tokens of their own.
#include "concord/opencl/formula/token_columns.hpp"

#include <fmt/format.h>

#include "concord/opencl/launch/blocking.hpp"
#include "concord/opencl/launch/sizes.hpp"

namespace concord::opencl {

Layout ChannelsLast::sliced(std::span<const std::int64_t> start, const TensorSpec& spec) const {
  const std::size_t last = shape_.rank() - 1;
  for (std::size_t axis = 0; axis < last; ++axis) {
    if (spec.shape[axis] != shape_[axis]) return nullptr;
  }
  if (!is_tokens() || start[last] % kBlock != 0 || !channels_last(spec, number_, axis_)) return nullptr;
  return std::make_shared<TokenColumns>(spec.shape, number_, spec.shape[-1], channels(), start[last]);
}

std::size_t TokenColumns::bytes() const { return size(shape_.elements()) * size_of(number_); }

bool TokenColumns::equals(const LayoutDescription& other) const {
  const auto* same = dynamic_cast<const TokenColumns*>(&other);
  return same != nullptr && same->number_ == number_ && same->shape_ == shape_ && same->columns_ == columns_ &&
         same->pitch_ == pitch_ && same->begin_ == begin_;
}

std::string TokenColumns::str() const { return fmt::format("columns of tokens {}", name_of(number_)); }

Layout TokenColumns::viewed_as(const TensorSpec& spec) const {
  const Shape& shape = spec.shape;
  std::int64_t columns = 1;
  for (std::size_t axis = shape.rank(); axis > 0 && columns < columns_; --axis) columns *= shape[axis - 1];
  if (columns != columns_ || channels_last(spec, number_, ChannelAxis::last) == nullptr) return nullptr;
  return std::make_shared<TokenColumns>(shape, number_, columns_, pitch_, begin_);
}

Layout TokenColumns::compact() const { return channels_last({DType::f32, shape_}, number_, ChannelAxis::last); }

const TokenColumns* as_token_columns(const Layout& layout) { return dynamic_cast<const TokenColumns*>(layout.get()); }

KernelRequest without_columns(KernelRequest request) {
  for (Layout& layout : request.input_layouts) {
    if (const TokenColumns* const columns = as_token_columns(layout)) layout = columns->compact();
  }
  return request;
}

std::unique_ptr<Kernel> prepare_columns_reorder(Context& context, const Layout& from, const Layout& to) {
  const TokenColumns* const columns = as_token_columns(from);
  if (columns == nullptr || (to != nullptr && !same_layout(columns->compact(), to))) return nullptr;
  constexpr std::int64_t kBlock = ChannelsLast::kBlock;
  const std::int64_t blocks = columns->columns() / kBlock, count = columns->tokens() * blocks;
  std::vector<Argument> arguments{blocks_of(input(0)), blocks_of(output(0))};
  for (const std::int64_t value : {count, blocks, columns->pitch() / kBlock, columns->begin() / kBlock}) {
    arguments.emplace_back(as_uint(value));
  }
  std::vector<std::string> definitions = number_definitions(context, columns->number());
  definitions.emplace_back(columns->number() == DType::f16 ? "NUMBERS=F16" : "NUMBERS=BF16");
  Stage stage{context.program("formula/channels_last.cl", definitions),
              to != nullptr ? "channels_last_slice" : "token_columns_to_floats", std::move(arguments)};
  blocking_of(context.limits(), count, 1).apply(stage);
  return std::make_unique<StagedKernel>(context, to != nullptr ? "columns to tokens" : "columns to row-major",
                                        std::vector<StagedKernel::AnyStage>{std::move(stage)});
}

}  // namespace concord::opencl
