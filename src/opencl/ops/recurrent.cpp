// Recurrent layers on OpenCL devices. A step is a GEMM followed by a gate kernel. The outputs hn, cn, diff_h0 and
// diff_c0 hold the running states; the begin of the workspace holds the GEMM result of a step. On GPUs a small forward
// step is one launch, with the running hidden state in the workspace. recurrent_persistent.cpp takes all steps at once.
#include "concord/opencl/ops/recurrent.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "concord/opencl/formula/kernels.hpp"
#include "concord/opencl/gemm/gemm.hpp"
#include "concord/opencl/launch/alternatives.hpp"
#include "concord/opencl/launch/sizes.hpp"

namespace concord::opencl {

std::vector<std::string> recurrent_definitions(const ops::RecurrentFamily& op, const ops::RecurrentSizes& sizes) {
  std::vector<std::string> list;
  switch (op.cell()) {
    case ops::RecurrentCell::lstm: list.emplace_back("CELL_LSTM"); break;
    case ops::RecurrentCell::gru: list.emplace_back("CELL_GRU"); break;
    case ops::RecurrentCell::rnn_tanh: list.emplace_back("RNN=concord_rnn_tanh"); break;
    case ops::RecurrentCell::rnn_relu: list.emplace_back("RNN=concord_rnn_relu"); break;
  }
  if (sizes.has_lengths) list.emplace_back("LENGTHS");
  return list;
}

namespace {

using Cell = ops::RecurrentCell;

// recurrent_step.cl: the units and sequences that a group owns, and its items.
constexpr std::int64_t kUnits = 4, kSequences = 64, kStepThreads = 256;

/// Whether one launch should multiply and advance the cells of a step, instead of a GEMM and a gate kernel: in small
/// steps the launches cost more than the work.
bool steps_at_once(const Context& context, const ops::RecurrentSizes& s) {
  constexpr std::int64_t kMostProducts = std::int64_t{1} << 27, kPitch = 17;
  const auto bytes = size(2 * (kSequences + kUnits * s.gates) * kPitch) * 4 * sizeof(float);
  return !context.limits().is_cpu && s.hidden % kUnits == 0 && context.limits().local_memory >= bytes &&
         context.limits().max_work_group >= size(kStepThreads) &&
         context.alternatives().should_use(alternative::kRecurrentStep,
                                           s.batch * s.hidden * s.gates * s.hidden <= kMostProducts);
}

/// The launches of one pass over the sequence. Every GEMM has the same sizes, cut and position in the workspace.
class RecurrentPass {
 public:
  RecurrentPass(Context& context, const ops::RecurrentFamily& op, const ops::RecurrentSizes& sizes, Precision precision)
      : context_(context),
        op_(op),
        s_(sizes),
        precision_(precision),
        program_(context.program("ops/recurrent.cl", recurrent_definitions(op, sizes))) {}

  /// left (N, inner) × right (inner, columns).
  [[nodiscard]] PartialProduct product(const BufferArgument& left, const GemmRight& right, std::int64_t inner,
                                       std::int64_t columns) const {
    Gemm gemm;
    gemm.precision = precision_;
    gemm.m = s_.batch;
    gemm.n = columns;
    gemm.k = inner;
    gemm.a.buffer = left;
    gemm.a.row = inner;
    gemm.b = right;
    gemm.largest = std::max(s_.batch, s_.hidden) * s_.gates * s_.hidden;
    return prepare_partial_gemm(context_, gemm, op_.name());
  }
  void multiply(const PartialProduct& product) {
    stages_.insert(stages_.end(), product.stages.begin(), product.stages.end());
    workspace_ = product.workspace;
  }

  /// The gate kernel of step t with `arguments`, the sizes and `more`. It adds up `parts` GEMM results.
  void gates(const std::string& function, std::vector<Argument> arguments, std::int64_t t, std::int64_t parts,
             std::vector<Argument> more) {
    for (const std::int64_t value : {s_.batch, s_.hidden, s_.steps, t, parts}) arguments.emplace_back(as_uint(value));
    arguments.insert(arguments.end(), more.begin(), more.end());
    add(function, std::move(arguments), s_.hidden, s_.batch);
  }

  /// Adds the last product to output 1.
  void finish(const PartialProduct& product) {
    const std::int64_t elements = s_.batch * s_.hidden;
    add("recurrent_finish", {product.result, output(1), as_uint(elements), as_uint(product.parts)}, elements, 1);
  }

  [[nodiscard]] std::unique_ptr<Kernel> kernel() {
    const std::string name = fmt::format("{} {} x{}", op_.name(), ops::name_of(op_.cell()), s_.steps);
    return std::make_unique<StagedKernel>(context_, name, std::move(stages_), workspace_);
  }

 private:
  void add(const std::string& function, std::vector<Argument> arguments, std::int64_t columns, std::int64_t rows) {
    const std::size_t local = std::min<std::size_t>(64, context_.limits().max_work_group);
    stages_.emplace_back(Stage{program_,
                               function,
                               std::move(arguments),
                               {(size(columns) + local - 1) / local * local, size(rows), 1},
                               {local, 1, 1}});
  }

  Context& context_;
  const ops::RecurrentFamily& op_;
  ops::RecurrentSizes s_;
  Precision precision_;
  PendingProgram program_;
  std::size_t workspace_ = 0;
  std::vector<StagedKernel::AnyStage> stages_;
};

/// The arguments of a forward step, up to its sizes. `from` and `to` are the states before and after it; `factor`
/// precedes them; `inputs` is the number of inputs of the operator.
std::vector<Argument> forward_arguments(const ops::Recurrent& op, const ops::RecurrentSizes& s, std::size_t inputs,
                                        const BufferArgument& factor, const BufferArgument& from,
                                        const BufferArgument& to) {
  const bool is_lstm = op.cell() == Cell::lstm, is_gru = op.cell() == Cell::gru;
  std::vector<Argument> arguments{input(0), factor, from};
  if (s.has_lengths) arguments.emplace_back(input(inputs - 1));
  arguments.insert(arguments.end(), {output(0), to});
  if (is_lstm) arguments.insert(arguments.end(), {input(3), output(2), output(3), output(4)});
  if (is_gru) arguments.insert(arguments.end(), {input(3), output(2)});
  return arguments;
}

/// One launch per step. The hidden state alternates between two positions in the workspace; the last step writes output
/// 1.
std::unique_ptr<Kernel> forward_in_steps(Context& context, const ops::Recurrent& op, const ops::RecurrentSizes& s,
                                         std::size_t inputs) {
  const PendingProgram program = context.program("ops/recurrent_step.cl", recurrent_definitions(op, s));
  const std::size_t bytes = aligned(size(s.batch * s.hidden) * sizeof(float));
  std::vector<StagedKernel::AnyStage> stages;
  for (std::int64_t k = 0; k < s.steps; ++k) {
    const BufferArgument from = k == 0 ? input(2) : workspace(size((k - 1) % 2) * bytes);
    const BufferArgument to = k + 1 == s.steps ? output(1) : workspace(size(k % 2) * bytes);
    std::vector<Argument> arguments = forward_arguments(op, s, inputs, input(1), from, to);
    const std::int64_t t = op.reverse() ? s.steps - 1 - k : k;
    for (const std::int64_t value : {s.batch, s.hidden, s.steps, t, std::int64_t{k == 0}}) {
      arguments.emplace_back(as_uint(value));
    }
    stages.emplace_back(
        Stage{program,
              "recurrent_step_forward",
              std::move(arguments),
              {size(s.hidden / kUnits * kStepThreads), size((s.batch + kSequences - 1) / kSequences), 1},
              {size(kStepThreads), 1, 1}});
  }
  const std::string name = fmt::format("{} {} x{}, a launch each", op.name(), ops::name_of(op.cell()), s.steps);
  return std::make_unique<StagedKernel>(context, name, std::move(stages),
                                        size(std::min<std::int64_t>(s.steps - 1, 2)) * bytes);
}

PreparedKernel prepare_recurrent(Context& context, const ops::Recurrent& op, const KernelRequest& request) {
  const ops::RecurrentSizes s = op.sizes(request.inputs);
  if (steps_are_persistent(context, s, request.precision)) {
    return prepared(request, prepare_persistent_steps(
                                 context, op, s, request.precision,
                                 forward_arguments(op, s, request.inputs.size(), input(1), input(2), output(1))));
  }
  if (steps_at_once(context, s)) return prepared(request, forward_in_steps(context, op, s, request.inputs.size()));
  const std::int64_t columns = s.gates * s.hidden;
  GemmRight transposed;
  transposed.buffer = input(1);
  transposed.k = 1;
  transposed.n = s.hidden;
  transposed.along_k = true;
  RecurrentPass pass(context, op, s, request.precision);
  const PartialProduct first = pass.product(input(2), transposed, s.hidden, columns);
  const PartialProduct later = pass.product(output(1), transposed, s.hidden, columns);

  const std::vector<Argument> arguments =
      forward_arguments(op, s, request.inputs.size(), first.result, input(2), output(1));
  for (std::int64_t k = 0; k < s.steps; ++k) {
    pass.multiply(k == 0 ? first : later);
    pass.gates("recurrent_forward", arguments, op.reverse() ? s.steps - 1 - k : k, first.parts,
               {std::uint32_t{k == 0}});
  }
  return prepared(request, pass.kernel());
}

/// The arguments of a backward step, up to its sizes. `factor` stands in front of the states.
std::vector<Argument> backward_arguments(const ops::RecurrentBackward& op, const ops::RecurrentSizes& s,
                                         std::size_t inputs, const BufferArgument& factor) {
  std::vector<Argument> arguments{input(0), input(1), factor, input(3), input(4)};
  if (s.has_lengths) arguments.emplace_back(input(inputs - 1));
  arguments.insert(arguments.end(), {output(0), output(1), output(2)});
  if (op.cell() == Cell::lstm) arguments.insert(arguments.end(), {input(5), input(6), input(7), input(8), output(3)});
  if (op.cell() == Cell::gru) arguments.insert(arguments.end(), {input(5), output(3)});
  return arguments;
}

PreparedKernel prepare_recurrent_backward(Context& context, const ops::RecurrentBackward& op,
                                          const KernelRequest& request) {
  const ops::RecurrentSizes s = op.sizes(request.inputs);
  if (steps_are_persistent(context, s, request.precision)) {
    return prepared(request, prepare_persistent_steps(context, op, s, request.precision,
                                                      backward_arguments(op, s, request.inputs.size(), input(2))));
  }
  const std::int64_t columns = s.gates * s.hidden;
  GemmRight weights;
  weights.buffer = input(2);
  weights.k = s.hidden;
  RecurrentPass pass(context, op, s, request.precision);
  // The gradient of the hidden part of step t's gates, passed back through the weights.
  const auto product_of = [&](std::int64_t t) {
    BufferArgument hidden = output(op.cell() == Cell::gru ? 3 : 0);
    hidden.extra_bytes = size(t * s.batch * columns) * sizeof(float);
    return pass.product(hidden, weights, columns, s.hidden);
  };
  PartialProduct product = product_of(0);

  const std::vector<Argument> arguments = backward_arguments(op, s, request.inputs.size(), product.result);
  for (std::int64_t k = 0; k < s.steps; ++k) {
    const std::int64_t t = op.reverse() ? k : s.steps - 1 - k;
    pass.gates("recurrent_backward", arguments, t, product.parts, {std::uint32_t{k == 0}, std::uint32_t{op.reverse()}});
    product = product_of(t);
    pass.multiply(product);
  }
  pass.finish(product);
  return prepared(request, pass.kernel());
}

}  // namespace

void add_recurrent(Kernels& kernels) {
  kernels.add<ops::Recurrent, prepare_recurrent>();
  kernels.add<ops::RecurrentBackward, prepare_recurrent_backward>();
}

}  // namespace concord::opencl
