// The layout of padded tokens, and the reorders between it and row-major.
#include "concord/opencl/formula/padded_tokens.hpp"

#include <fmt/format.h>

#include "concord/opencl/launch/blocking.hpp"
#include "concord/opencl/launch/sizes.hpp"

namespace concord::opencl {

std::int64_t PaddedTokens::blocks_of_token() const { return divide_up(channels(), ChannelsLast::kBlock); }

std::size_t PaddedTokens::bytes() const {
  return size(tokens() * blocks_of_token() * ChannelsLast::kBlock) * size_of(number_);
}

bool PaddedTokens::equals(const LayoutDescription& other) const {
  const auto* same = dynamic_cast<const PaddedTokens*>(&other);
  return same != nullptr && same->number_ == number_ && same->shape_ == shape_;
}

std::string PaddedTokens::str() const { return fmt::format("padded tokens {}", name_of(number_)); }

Layout PaddedTokens::viewed_as(const TensorSpec& spec) const {
  return spec.shape.rank() >= 2 && spec.shape[-1] == channels() ? padded_tokens(spec, number_) : nullptr;
}

Layout padded_tokens(const TensorSpec& spec, DType number) {
  constexpr std::int64_t kMost = std::int64_t{1} << 31, kFewest = 1024;
  const Shape& shape = spec.shape;
  if (spec.dtype != DType::f32 || shape.rank() < 2 || shape.elements() == 0) return nullptr;
  if (shape[-1] < kFewest || shape[-1] % ChannelsLast::kBlock == 0) return nullptr;
  const std::int64_t tokens = shape.elements() / shape[-1];
  if (tokens * round_up(shape[-1], ChannelsLast::kBlock) >= kMost) return nullptr;
  return std::make_shared<PaddedTokens>(shape, number);
}

const PaddedTokens* as_padded_tokens(const Layout& layout) { return dynamic_cast<const PaddedTokens*>(layout.get()); }

Layout any_tokens(const TensorSpec& spec, DType number) {
  Layout layout = channels_last(spec, number, ChannelAxis::last);
  return layout != nullptr ? layout : padded_tokens(spec, number);
}

std::unique_ptr<Kernel> prepare_padded_reorder(Context& context, const Layout& from, const Layout& to) {
  const bool into = as_padded_tokens(to) != nullptr;
  const PaddedTokens* const found = as_padded_tokens(into ? to : from);
  if (found == nullptr || (into ? from : to) != nullptr) return nullptr;
  const PaddedTokens& tokens = *found;
  std::vector<std::string> definitions = number_definitions(context, tokens.number());
  definitions.emplace_back(tokens.number() == DType::f16 ? "NUMBERS=F16" : "NUMBERS=BF16");
  const std::int64_t pairs = tokens.tokens() * tokens.blocks_of_token() * (ChannelsLast::kBlock / 2);
  Stage stage{context.program("formula/channels_last.cl", definitions),
              into ? "padded_tokens_from_floats" : "padded_tokens_to_floats",
              {input(0, 4), output(0, 4), as_uint(pairs), as_uint(tokens.channels()),
               as_uint(tokens.blocks_of_token() * (ChannelsLast::kBlock / 2))}};
  blocking_of(context.limits(), pairs, 1).apply(stage);
  return std::make_unique<StagedKernel>(context, into ? "to padded tokens" : "to row-major",
                                        std::vector<StagedKernel::AnyStage>{std::move(stage)});
}

}  // namespace concord::opencl
