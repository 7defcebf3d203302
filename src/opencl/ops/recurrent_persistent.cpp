// All steps of a recurrent layer in one launch, whose groups wait for each other
// (cl_kernels/ops/recurrent_persistent.cl).
#include <fmt/format.h>

#include "concord/opencl/gemm/gemm.hpp"
#include "concord/opencl/gemm/matrix_kernel.hpp"
#include "concord/opencl/launch/alternatives.hpp"
#include "concord/opencl/launch/sizes.hpp"
#include "concord/opencl/ops/recurrent.hpp"

namespace concord::opencl {
namespace {

/// A group of the kernel: an item has a unit of a sequence.
struct PersistentGroup {
  static constexpr std::int64_t kUnits = 16, kSequences = 16, kThreads = kUnits * kSequences, kWarps = kThreads / 32;
};

bool is_backward(const ops::RecurrentFamily& op) { return dynamic_cast<const ops::RecurrentBackward*>(&op) != nullptr; }

/// How the sequences are divided: groups with the same units, and chunks of sequences of each.
struct PersistentDivision {
  std::int64_t owners, groups, chunks;
  [[nodiscard]] std::int64_t rows() const { return groups * chunks * PersistentGroup::kSequences; }
};

/// With fewer groups than compute units, all groups are on the device at once, also beside a kernel that waits for
/// another device.
PersistentDivision division_of(const Context& context, const ops::RecurrentSizes& s) {
  const std::int64_t blocks = divide_up(s.batch, PersistentGroup::kSequences);
  const std::int64_t owners = s.hidden / PersistentGroup::kUnits;
  const std::int64_t most = std::max<std::int64_t>(1, (std::int64_t{context.limits().compute_units} - 1) / owners);
  const std::int64_t chunks = divide_up(blocks, most);
  return {owners, divide_up(blocks, chunks), chunks};
}

std::int64_t bytes_of(Precision precision) { return precision == Precision::tf32 ? 4 : 2; }

}  // namespace

bool steps_are_persistent(Context& context, const ops::RecurrentSizes& s, Precision precision) {
  // Each warp has whole vectors of the states, and weights that fit into its registers.
  const std::int64_t widest = precision == Precision::tf32 ? 512 : 1024;
  const bool fits = s.hidden % (PersistentGroup::kWarps * 32) == 0 && s.hidden <= widest;
  if (precision == Precision::fp32 || !fits || s.batch == 0) return false;
  const PersistentDivision division = division_of(context, s);
  if (division.owners * division.groups >= context.limits().compute_units) return false;
  if (context.limits().max_work_group < size(PersistentGroup::kThreads)) return false;
  if (!find_gemm_implementation("mma")->device_refusal(context, precision).empty()) return false;
  constexpr std::int64_t kMostChunks = 4;  // as many as were measured
  return context.alternatives().should_use(alternative::kRecurrentPersistent, division.chunks <= kMostChunks);
}

std::unique_ptr<Kernel> prepare_persistent_steps(Context& context, const ops::RecurrentFamily& op,
                                                 const ops::RecurrentSizes& s, Precision precision,
                                                 std::vector<Argument> operands) {
  const PersistentDivision division = division_of(context, s);
  const bool backward = is_backward(op);
  const std::int64_t inner = backward ? s.gates * s.hidden : s.hidden;
  const std::int64_t flags = division.rows() / PersistentGroup::kSequences * division.owners;
  const std::size_t published = size(divide_up(2 * division.rows() * inner * bytes_of(precision), 256) * 256);

  std::vector<std::string> definitions = recurrent_definitions(op, s);
  definitions.push_back(fmt::format("HIDDEN={}", s.hidden));
  definitions.push_back(fmt::format("UNITS={}", PersistentGroup::kUnits));
  definitions.push_back(fmt::format("SEQUENCES={}", PersistentGroup::kSequences));
  definitions.push_back(fmt::format("WARPS={}", PersistentGroup::kWarps));
  definitions.emplace_back(matrix_precision(precision));
  if (backward) definitions.emplace_back("BACKWARD");
  const PendingProgram program = context.program("ops/recurrent_persistent.cl", definitions);

  operands.emplace_back(workspace(0, size(bytes_of(precision))));
  operands.emplace_back(workspace(published));
  for (const std::int64_t value : {s.batch, s.steps, division.chunks, std::int64_t{op.reverse()}}) {
    operands.emplace_back(as_uint(value));
  }
  std::vector<StagedKernel::AnyStage> stages;
  stages.emplace_back(Stage{program, "recurrent_persistent_begin", {workspace(published)}, {size(flags), 1, 1}});
  stages.emplace_back(Stage{program,
                            backward ? "recurrent_persistent_backward" : "recurrent_persistent_forward",
                            std::move(operands),
                            {size(division.owners * PersistentGroup::kThreads), size(division.groups), 1},
                            {size(PersistentGroup::kThreads), 1, 1}});
  const std::string name = fmt::format("{} {} x{}, persistent", op.name(), ops::name_of(op.cell()), s.steps);
  return std::make_unique<StagedKernel>(context, name, std::move(stages), published + size(flags) * 4);
}

}  // namespace concord::opencl
