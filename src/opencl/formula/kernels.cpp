// Kernels: the lookup by the operator's type.
#include "concord/opencl/formula/kernels.hpp"

#include "concord/core/check.hpp"
#include "concord/opencl/formula/joined_kernel.hpp"
#include "concord/ops/fused.hpp"
#include "concord/ops/pointwise.hpp"

namespace concord::opencl {

bool Kernels::supports_epilogue(const Operator& op, std::span<const TensorSpec> inputs, const TensorSpec& output,
                                const Expression& epilogue, std::span<const TensorSpec> extra) const {
  const auto found = fused_.find(typeid(op));
  return found != fused_.end() && found->second.supports(op, inputs, output, epilogue, extra);
}

PreparedKernel Kernels::prepare_fused(Context& context, const Operator& op, const KernelRequest& request,
                                      const Epilogue& epilogue) const {
  const auto found = fused_.find(typeid(op));
  CONCORD_CHECK(found != fused_.end(), NotSupported, "no kernel applies an expression to the result of {}", op.name());
  return found->second.prepare(context, op, request, epilogue);
}

bool Kernels::supports_prologue(const Operator& op, std::span<const TensorSpec> inputs, const Expression& prologue,
                                std::span<const TensorSpec> extra) const {
  const auto* const fused = dynamic_cast<const ops::Fused*>(&op);
  const Operator& base = fused != nullptr ? *fused->base() : op;
  const auto found = prologued_.find(typeid(base));
  return found != prologued_.end() && found->second.supports(base, inputs, prologue, extra);
}

PreparedKernel Kernels::prepare_prologued(Context& context, const ops::Prologued& op,
                                          const KernelRequest& request) const {
  const auto* const fused = dynamic_cast<const ops::Fused*>(op.base().get());
  const Operator& base = fused != nullptr ? *fused->base() : *op.base();
  const auto found = prologued_.find(typeid(base));
  if (found == prologued_.end()) return prepare_apart(context, op, request);
  std::optional<Epilogue> epilogue;
  if (fused != nullptr) epilogue.emplace(Epilogue{fused->epilogue(), fused->base_inputs()});
  auto kernel =
      found->second.prepare(context, base, request, {op.prologue(), op.base_inputs()}, epilogue ? &*epilogue : nullptr);
  return kernel ? *std::move(kernel) : prepare_apart(context, op, request);
}

PreparedKernel Kernels::prepare_apart(Context& context, const ops::Prologued& op, const KernelRequest& request) const {
  const auto first_extra = request.inputs.begin() + static_cast<std::ptrdiff_t>(op.base_inputs());
  const TensorSpec& between = request.inputs[0];
  const ops::Pointwise pointwise(op.prologue(), {DType::f32}, "prologue", between.shape);
  KernelRequest formula{&pointwise, {between}, {}, {between}, request.precision};
  formula.inputs.insert(formula.inputs.end(), first_extra, request.inputs.end());
  formula.input_layouts.resize(formula.inputs.size());
  KernelRequest reader{op.base().get(), {request.inputs.begin(), first_extra}, {}, request.outputs, request.precision,
                       request.is_exact};
  reader.input_layouts.resize(reader.inputs.size());
  return prepared(request, joined_kernel(context, *prepare(context, formula).kernel, *prepare(context, reader).kernel,
                                         op.base_inputs(), between.bytes()));
}

}  // namespace concord::opencl
