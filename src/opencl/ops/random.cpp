// Random kernels: one work-item for four neighbours of the stream.
#include "concord/ops/random.hpp"

#include "concord/opencl/formula/kernels.hpp"
#include "concord/opencl/launch/blocking.hpp"
#include "concord/opencl/launch/context.hpp"

namespace concord::opencl {
namespace {

PreparedKernel prepare_random(Context& context, const ops::Random& op, const KernelRequest& request) {
  const auto n = static_cast<std::uint64_t>(request.outputs.at(0).shape.elements());
  const bool is_uniform = op.distribution() == ops::Distribution::uniform;
  Stage stage;
  stage.program = context.program("ops/random.cl");
  stage.function = op.name();
  stage.arguments = {input(0), output(0), op.a(), is_uniform ? op.b() - op.a() : op.b(), op.purpose(), n};
  blocking_of(context.limits(), static_cast<std::int64_t>((n + 3) / 4), 1).apply(stage);
  return prepared(request, std::make_unique<StagedKernel>(context, std::string(op.name()) + " philox",
                                                          std::vector<StagedKernel::AnyStage>{std::move(stage)}));
}

}  // namespace

void add_random(Kernels& kernels) { kernels.add<ops::Random, prepare_random>(); }

}  // namespace concord::opencl
