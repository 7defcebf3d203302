// Kernels: the lookup by the operator's type.
#include "concord/opencl/formula/kernels.hpp"

#include "concord/core/check.hpp"

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

}  // namespace concord::opencl
