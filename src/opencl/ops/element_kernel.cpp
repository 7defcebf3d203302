// ElementKernel: definitions and arguments of kernels over elements.
#include "concord/opencl/ops/element_kernel.hpp"

#include "concord/opencl/launch/strides.hpp"

namespace concord::opencl {

ElementKernel::ElementKernel(Context& context, std::int64_t elements)
    : context_(context),
      elements_(elements),
      wide_(is_wide_index(elements)),
      blocking_(blocking_of(context.limits(), elements)),
      definitions_{blocking_.definition()} {
  if (wide_) definitions_.emplace_back("WIDE_INDEX");
}

void ElementKernel::add_index(std::int64_t value) { arguments_.push_back(index_argument(value, wide_)); }

void ElementKernel::add_divisor(std::int64_t value) {
  const FastDivisor divisor = wide_ ? FastDivisor{} : fast_divisor(value);
  add_index(value);
  arguments_.emplace_back(divisor.multiplier);
  arguments_.emplace_back(divisor.shift);
}

PreparedKernel ElementKernel::prepare(const KernelRequest& request, const std::string& stem, const std::string& name) {
  add_index(elements_);
  Stage stage{context_.program("ops/" + stem + ".cl", definitions_), stem, std::move(arguments_)};
  blocking_.apply(stage);
  return prepared(
      request, std::make_unique<StagedKernel>(context_, name, std::vector<StagedKernel::AnyStage>{std::move(stage)}));
}

}  // namespace concord::opencl
