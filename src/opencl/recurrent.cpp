// Recurrent layers on OpenCL devices: a product and a gate kernel a time step, enqueued one after the other. The
// running states stand in the outputs hn, cn, diff_h0 and diff_c0; the product of a step stands at the begin of the
// workspace.
#include "concord/ops/recurrent.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "concord/opencl/gemm.hpp"
#include "concord/opencl/kernels.hpp"

namespace concord::opencl {
namespace {

using Cell = ops::RecurrentCell;

std::size_t size(std::int64_t value) { return static_cast<std::size_t>(value); }

std::vector<std::string> definitions_of(const ops::RecurrentFamily& op, const ops::RecurrentSizes& s) {
  std::vector<std::string> list;
  switch (op.cell()) {
    case Cell::lstm: list.emplace_back("CELL_LSTM"); break;
    case Cell::gru: list.emplace_back("CELL_GRU"); break;
    case Cell::rnn_tanh: list.emplace_back("RNN=concord_rnn_tanh"); break;
    case Cell::rnn_relu: list.emplace_back("RNN=concord_rnn_relu"); break;
  }
  if (s.has_lengths) list.emplace_back("LENGTHS");
  return list;
}

/// The launches of one pass over the sequence.
class Pass {
 public:
  Pass(Context& context, const ops::RecurrentFamily& op, const ops::RecurrentSizes& sizes, std::int64_t product_columns)
      : context_(context),
        op_(op),
        s_(sizes),
        program_(context.program("recurrent.cl", definitions_of(op, sizes))),
        product_bytes_((size(s_.batch * product_columns) * sizeof(float) + 255) / 256 * 256) {}

  /// The step that is run as number `k`.
  [[nodiscard]] std::int64_t step(std::int64_t k, bool reverse) const { return reverse ? s_.steps - 1 - k : k; }

  /// left (N, K) at `element` × weights, into the workspace.
  void multiply(BufferArgument left, std::int64_t element, const GemmRight& right, std::int64_t k,
                std::int64_t columns) {
    Gemm gemm;
    gemm.m = s_.batch;
    gemm.n = columns;
    gemm.k = k;
    left.extra_bytes = size(element) * sizeof(float);
    gemm.a = {left, 0, k, 1, 0, 0, false};
    gemm.b = right;
    gemm.c = {workspace(), 0, columns, 0, 0};
    gemm.largest = std::max(s_.steps * s_.batch, s_.hidden) * s_.gates * s_.hidden;
    gemm.before_bytes = product_bytes_;
    const std::unique_ptr<Kernel> kernel = prepare_gemm(context_, gemm, op_.name());
    const auto& product = dynamic_cast<const StagedKernel&>(*kernel);
    stages_.insert(stages_.end(), product.stages().begin(), product.stages().end());
    workspace_ = std::max(workspace_, product.workspace());
  }

  /// The gate kernel of step t; `arguments` without the sizes. `more` follows them.
  void gates(const std::string& function, std::vector<Argument> arguments, std::int64_t t, std::vector<Argument> more) {
    for (const std::int64_t value : {s_.batch, s_.hidden, s_.steps, t}) arguments.emplace_back(number(value));
    arguments.insert(arguments.end(), more.begin(), more.end());
    add(function, std::move(arguments), s_.hidden, s_.batch);
  }

  void finish() {
    const std::int64_t elements = s_.batch * s_.hidden;
    add("recurrent_finish", {workspace(), output(1), number(elements)}, elements, 1);
  }

  [[nodiscard]] std::unique_ptr<Kernel> kernel() {
    const std::string name = fmt::format("{} {} x{}", op_.name(), ops::name_of(op_.cell()), s_.steps);
    return std::make_unique<StagedKernel>(context_, name, std::move(stages_), workspace_);
  }

 private:
  static std::uint32_t number(std::int64_t value) { return static_cast<std::uint32_t>(value); }

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
  boost::compute::program program_;
  std::size_t product_bytes_, workspace_ = 0;
  std::vector<StagedKernel::AnyStage> stages_;
};

}  // namespace

PreparedKernel prepare_recurrent(Context& context, const ops::Recurrent& op, const KernelRequest& request) {
  const ops::RecurrentSizes s = op.sizes(request.inputs);
  const std::int64_t columns = s.gates * s.hidden;
  const GemmRight transposed{input(1), 0, 1, s.hidden, true, 0, false, 0};
  std::vector<Argument> arguments{input(0), workspace(), input(2)};
  if (s.has_lengths) arguments.emplace_back(input(request.inputs.size() - 1));
  arguments.insert(arguments.end(), {output(0), output(1)});
  if (op.cell() == Cell::lstm) arguments.insert(arguments.end(), {input(3), output(2), output(3), output(4)});
  if (op.cell() == Cell::gru) arguments.insert(arguments.end(), {input(3), output(2)});
  Pass pass(context, op, s, columns);
  for (std::int64_t k = 0; k < s.steps; ++k) {
    pass.multiply(k == 0 ? input(2) : output(1), 0, transposed, s.hidden, columns);
    pass.gates("recurrent_forward", arguments, pass.step(k, op.reverse()), {std::uint32_t{k == 0}});
  }
  return prepared(request, pass.kernel());
}

PreparedKernel prepare_recurrent_backward(Context& context, const ops::RecurrentBackward& op,
                                          const KernelRequest& request) {
  const ops::RecurrentSizes s = op.sizes(request.inputs);
  const std::int64_t columns = s.gates * s.hidden;
  const GemmRight plain{input(2), 0, s.hidden, 1, false, 0, false, 0};
  std::vector<Argument> arguments{input(0), input(1), workspace(), input(3), input(4)};
  if (s.has_lengths) arguments.emplace_back(input(request.inputs.size() - 1));
  arguments.insert(arguments.end(), {output(0), output(1), output(2)});
  if (op.cell() == Cell::lstm) arguments.insert(arguments.end(), {input(5), input(6), input(7), input(8), output(3)});
  if (op.cell() == Cell::gru) arguments.insert(arguments.end(), {input(5), output(3)});
  const BufferArgument hidden = output(op.cell() == Cell::gru ? 3 : 0);
  Pass pass(context, op, s, s.hidden);
  for (std::int64_t k = 0; k < s.steps; ++k) {
    const std::int64_t t = pass.step(k, !op.reverse());
    pass.gates("recurrent_backward", arguments, t, {std::uint32_t{k == 0}, std::uint32_t{op.reverse()}});
    pass.multiply(hidden, t * s.batch * columns, plain, columns, s.hidden);
  }
  pass.finish();
  return prepared(request, pass.kernel());
}

}  // namespace concord::opencl
