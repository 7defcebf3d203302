// Batch normalisation and its gradient through oneDNN, in the layout the images come in.
#include "concord/ops/normalise.hpp"

#include "families.hpp"

namespace concord::cpu {
namespace {

// (N, C, …) as oneDNN takes it: four dimensions, channels-last if the source is. Other ranks are row-major.
struct Images {
  Desc desc;
  bool last = false;
};

Images images_of(const TensorSpec& spec, const Layout& layout) {
  if (is_channels_last(spec, layout)) return {channels_last_desc(spec), true};
  const Shape& shape = spec.shape;
  const std::int64_t area = shape.elements() / (shape[0] * shape[1]);
  if (area == 1) return {plain_desc(DType::f32, {shape[0], shape[1]}), false};
  return {plain_desc(DType::f32, {shape[0], shape[1], area, 1}), false};
}

Layout layout_for(const Images& images, const TensorSpec& spec) { return images.last ? channels_last(spec) : nullptr; }

}  // namespace

PreparedKernel prepare_batch_norm(Backend&, const ops::BatchNorm& op, const KernelRequest& request) {
  const Images images = images_of(request.inputs[0], request.input_layouts[0]);
  const Desc channels = plain_desc(DType::f32, {request.inputs[0].shape[1]});
  const Layout layout = layout_for(images, request.inputs[0]);
  return guarded(op.name(), [&] {
    const auto desc = batch_norm_forward(images.desc, op.epsilon(), attributes());
    return PreparedKernel{
        .kernel = primitive_kernel(
            dnnl::batch_normalization_forward(desc), desc,
            {input_argument(DNNL_ARG_SRC, 0, images.desc), input_argument(DNNL_ARG_SCALE, 1, channels),
             input_argument(DNNL_ARG_SHIFT, 2, channels), output_argument(DNNL_ARG_DST, 0, images.desc),
             output_argument(DNNL_ARG_MEAN, 1, channels), output_argument(DNNL_ARG_VARIANCE, 2, channels)}),
        .input_layouts = {layout, nullptr, nullptr},
        .output_layouts = {layout, nullptr, nullptr}};
  });
}

PreparedKernel prepare_batch_norm_backward(Backend&, const ops::BatchNormBackward& op, const KernelRequest& request) {
  const Images images = images_of(request.inputs[0], request.input_layouts[0]);
  const Desc channels = plain_desc(DType::f32, {request.inputs[0].shape[1]});
  const Layout layout = layout_for(images, request.inputs[0]);
  return guarded(op.name(), [&] {
    const auto desc = batch_norm_backward(images.desc, op.epsilon(), attributes());
    std::vector<PrimitiveArgument> arguments{
        input_argument(DNNL_ARG_SRC, 0, images.desc),      input_argument(DNNL_ARG_DIFF_DST, 1, images.desc),
        input_argument(DNNL_ARG_SCALE, 2, channels),       input_argument(DNNL_ARG_MEAN, 3, channels),
        input_argument(DNNL_ARG_VARIANCE, 4, channels),    output_argument(DNNL_ARG_DIFF_SRC, 0, images.desc),
        output_argument(DNNL_ARG_DIFF_SCALE, 1, channels), output_argument(DNNL_ARG_DIFF_SHIFT, 2, channels)};
    // oneDNN 2.6 insists on a shift that its gradient does not depend on.
    if (!kOneDnn3) arguments.push_back(input_argument(DNNL_ARG_SHIFT, 2, channels));
    return PreparedKernel{
        .kernel = primitive_kernel(dnnl::batch_normalization_backward(desc), desc, std::move(arguments)),
        .input_layouts = {layout, layout, nullptr, nullptr, nullptr},
        .output_layouts = {layout, nullptr, nullptr}};
  });
}

}  // namespace concord::cpu
