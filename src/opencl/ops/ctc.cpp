// CTC on OpenCL devices: the recursions of a sample by one work-group, then the sums over places.
#include "concord/ops/ctc.hpp"

#include "concord/opencl/formula/kernels.hpp"
#include "concord/opencl/ops/lanes.hpp"

namespace concord::opencl {
namespace {

PreparedKernel prepare_ctc(Context& context, const ops::Ctc& op, const KernelRequest& request) {
  const Shape& src = request.inputs[0].shape;
  const std::int64_t labels = request.inputs[1].shape[1], width = 2 * labels + 1;
  const std::size_t items = lanes_for(context, width, 1).lanes;
  constexpr std::size_t kPair = 2 * sizeof(float);  // a logarithm
  const std::size_t places_bytes = static_cast<std::size_t>(src[0] * src[1] * width) * kPair;
  const std::size_t ahead_bytes = static_cast<std::size_t>(src[1] * 2 * width) * kPair;
  const auto steps = static_cast<std::int32_t>(src[0]), samples = static_cast<std::int32_t>(src[1]);
  const auto classes = static_cast<std::int32_t>(src[2]), most = static_cast<std::int32_t>(labels);
  const auto program = context.program("ops/ctc.cl", {"ITEMS=" + std::to_string(items)});
  std::vector<StagedKernel::AnyStage> stages;
  stages.emplace_back(Stage{program,
                            "ctc_paths",
                            {input(0), input(1), input(2), input(3), output(0), workspace(0, kPair),
                             workspace(places_bytes, kPair), steps, samples, classes, most, op.blank()},
                            {static_cast<std::size_t>(samples) * items, 1, 1},
                            {items, 1, 1}});
  stages.emplace_back(Stage{program,
                            "ctc_occupancy",
                            {input(1), input(2), input(3), workspace(0, kPair), output(0), output(1), steps, samples,
                             classes, most, op.blank(), static_cast<std::int32_t>(op.zero_infinity())},
                            {static_cast<std::size_t>(src[0] * src[1]), 1, 1}});
  if (op.zero_infinity()) {
    stages.emplace_back(
        Stage{program, "ctc_drop_infinity", {output(0), samples}, {static_cast<std::size_t>(samples), 1, 1}});
  }
  return prepared(request, std::make_unique<StagedKernel>(context, std::string(op.name()), std::move(stages),
                                                          places_bytes + ahead_bytes));
}

}  // namespace

void add_ctc(Kernels& kernels) { kernels.add<ops::Ctc, prepare_ctc>(); }

}  // namespace concord::opencl
