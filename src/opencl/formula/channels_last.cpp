// The channels-last layout and the reorders between it and row-major.
#include "concord/opencl/formula/channels_last.hpp"

#include "concord/core/check.hpp"
#include "concord/opencl/launch/blocking.hpp"
#include "concord/opencl/launch/context.hpp"
#include "concord/opencl/launch/sizes.hpp"

namespace concord::opencl {

std::size_t ChannelsLast::bytes() const { return static_cast<std::size_t>(shape_.elements()) * size_of(number_); }

bool ChannelsLast::equals(const LayoutDescription& other) const {
  const auto* same = dynamic_cast<const ChannelsLast*>(&other);
  return same != nullptr && same->number_ == number_ && same->axis_ == axis_ && same->shape_ == shape_;
}

std::string ChannelsLast::str() const {
  return fmt::format("{} {}", is_tokens() ? "tokens" : "channels-last", name_of(number_));
}

Layout ChannelsLast::viewed_as(const TensorSpec& spec) const {
  const Shape& shape = spec.shape;
  const bool is_possible = is_tokens() || (shape.rank() >= 3 && shape[0] == shape_[0] && shape[1] == shape_[1]);
  return is_possible ? channels_last(spec, number_, axis_) : nullptr;
}

Layout ChannelsLast::transposed(std::span<const std::size_t> order, const TensorSpec& spec) const {
  const std::size_t last = order.size() - 1;
  if (order.size() < 3 || order[0] != 0) return nullptr;
  // All axes but the channels keep their order.
  for (std::size_t i = 1; i < last; ++i) {
    if (is_tokens() ? order[i + 1] != i : order[i] != i + 1) return nullptr;
  }
  if (order[is_tokens() ? 1 : last] != (is_tokens() ? last : 1)) return nullptr;
  return channels_last(spec, number_, is_tokens() ? ChannelAxis::second : ChannelAxis::last);
}

std::optional<DType> ChannelsLast::row_major_type() const {
  return is_tokens() && number_ != DType::i32 ? std::optional(number_) : std::nullopt;
}

DType storage_number(Precision precision) { return precision == Precision::fp16 ? DType::f16 : DType::bf16; }

Layout channels_last(const TensorSpec& spec, DType number, ChannelAxis axis) {
  constexpr std::int64_t kMost = std::int64_t{1} << 31;
  const Shape& shape = spec.shape;
  if (shape.rank() < (axis == ChannelAxis::last ? 2 : 3)) return nullptr;
  const bool fits = shape.elements() > 0 && shape.elements() < kMost &&
                    (axis == ChannelAxis::last ? shape[-1] % ChannelsLast::kBlock == 0
                                               : shape[0] <= kMostGroups && shape[1] % ChannelsLast::kBlock == 0);
  const bool is_number = spec.dtype == DType::f32 || spec.dtype == number;
  return fits && is_number ? std::make_shared<ChannelsLast>(shape, number, axis) : nullptr;
}

const ChannelsLast* as_channels_last(const Layout& layout) { return dynamic_cast<const ChannelsLast*>(layout.get()); }

const ChannelsLast* as_images(const Layout& layout) {
  const ChannelsLast* const found = as_channels_last(layout);
  return found != nullptr && found->axis() == ChannelAxis::second ? found : nullptr;
}

const ChannelsLast* first_channels_last(const KernelRequest& request, ChannelAxis axis) {
  for (const Layout& layout : request.input_layouts) {
    if (const ChannelsLast* found = as_channels_last(layout); found != nullptr && found->axis() == axis) return found;
  }
  return nullptr;
}

std::optional<ChannelAxis> channel_axis(const KernelRequest& request) {
  for (const Layout& layout : request.input_layouts) {
    if (const ChannelsLast* found = as_channels_last(layout)) return found->axis();
  }
  return std::nullopt;
}

std::vector<std::string> number_definitions(Context& context, DType number) {
  std::vector<std::string> definitions;
  if (number == DType::f16) definitions.emplace_back("NUMBERS_F16");
  if (number == DType::f32) definitions.emplace_back("NUMBERS_F32");
  if (context.capability().has_matrix_cores()) definitions.insert(definitions.end(), {"PTX", "CONCORD_SHORT_RESULTS"});
  return definitions;
}

std::vector<std::string> reorder_definitions(Context& context, DType number) {
  std::vector<std::string> definitions = number_definitions(context, number);
  definitions.emplace_back(number == DType::i32   ? "NUMBERS=I32"
                           : number == DType::f16 ? "NUMBERS=F16"
                                                  : "NUMBERS=BF16");
  return definitions;
}

namespace {

/// A launch over the squares of channels and places of an image, which gets `operands`, channels and places.
Stage over_squares(Context& context, const ChannelsLast& image, std::string function, std::vector<Argument> operands) {
  constexpr std::int64_t kSide = 32, kRows = 8;
  operands.insert(operands.end(), {as_uint(image.channels()), as_uint(image.places())});
  return {context.program("formula/channels_last.cl", reorder_definitions(context, image.number())),
          std::move(function),
          std::move(operands),
          {size(divide_up(image.places(), kSide) * kSide), size(divide_up(image.channels(), kSide) * kRows),
           size(image.images())},
          {size(kSide), size(kRows), 1}};
}

}  // namespace

std::unique_ptr<Kernel> prepare_channels_last_reorder(Context& context, const TensorSpec& spec, const Layout& from,
                                                      const Layout& to) {
  const bool into = as_channels_last(to) != nullptr;
  const ChannelsLast* last = as_channels_last(into ? to : from);
  CONCORD_CHECK(last != nullptr && (into ? from : to) == nullptr, NotSupported, "no reorder of {} from {} to {}",
                spec.str(), from ? from->str() : "row-major", to ? to->str() : "row-major");
  const std::vector<std::string> definitions = reorder_definitions(context, last->number());
  if (last->axis() == ChannelAxis::last) {
    Stage convert{context.program("formula/channels_last.cl", definitions),
                  into ? "tokens_from_floats" : "tokens_to_floats",
                  {input(0, 16), output(0, 16), static_cast<std::uint32_t>(last->blocks())}};
    blocking_of(context.limits(), last->blocks(), 1).apply(convert);
    return std::make_unique<StagedKernel>(context, into ? "to tokens" : "to row-major",
                                          std::vector<StagedKernel::AnyStage>{std::move(convert)});
  }
  if (!into) return prepare_image_to_rows(context, *last, last->channels(), 0);
  Stage stage =
      over_squares(context, *last, "channels_last_from_rows", {input(0, 4), output(0, size_of(last->number()))});
  return std::make_unique<StagedKernel>(context, "to channels-last",
                                        std::vector<StagedKernel::AnyStage>{std::move(stage)});
}

std::unique_ptr<Kernel> prepare_image_to_rows(Context& context, const ChannelsLast& image, std::int64_t pitch,
                                              std::int64_t begin) {
  Stage stage =
      over_squares(context, image, "channels_last_to_rows", {input(0, size_of(image.number())), output(0, 4)});
  stage.arguments.insert(stage.arguments.end(), {as_uint(pitch), as_uint(begin)});
  return std::make_unique<StagedKernel>(context, "to row-major", std::vector<StagedKernel::AnyStage>{std::move(stage)});
}

std::vector<std::size_t> of_shape(const Shape& shape, std::span<const TensorSpec> specs) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    if (specs[i].shape == shape) found.push_back(i);
  }
  return found;
}

std::vector<std::size_t> like_result(const KernelRequest& request, std::span<const TensorSpec> specs) {
  return of_shape(request.outputs[0].shape, specs);
}

}  // namespace concord::opencl
