// Attention and its gradients on OpenCL devices, one kernel each: on matrix cores where attention_wgmma.cpp or
// attention_mma.cpp support the problem, else plain kernels with tiles as large as the local memory allows.
#include "concord/opencl/ops/attention.hpp"

#include <algorithm>

#include "concord/core/check.hpp"
#include "concord/opencl/formula/channels_last.hpp"
#include "concord/opencl/formula/kernels.hpp"
#include "concord/opencl/launch/alternatives.hpp"
#include "concord/ops/attention.hpp"

namespace concord::opencl {
namespace {

/// Rows that a work-group owns, rows of a tile of the other side, and the grid of its items
/// (cl_kernels/ops/attention.h).
struct Tiles {
  std::size_t own, other, tx, ty;
};

std::size_t local_bytes(const Tiles& tiles, std::size_t width, AttentionPass pass) {
  const std::size_t stride = 4 * ((((width + tiles.tx - 1) / tiles.tx * tiles.tx + 3) / 4) | 1);
  const std::size_t rows = (pass == AttentionPass::forward ? 1 : 2) * tiles.own + tiles.other;
  const std::size_t scratch = pass == AttentionPass::forward ? tiles.own * tiles.tx : 0;
  const std::size_t flag = pass == AttentionPass::backward_query ? 0 : 1;
  return sizeof(float) * (rows * stride + tiles.own * (tiles.other + 4) + scratch + flag);
}

/// The first that fits: an item has at most 64 sums in registers. CPUs take small tiles, which they compile four times
/// as fast.
Tiles tiles_for(const Context& context, std::string_view name, std::size_t width, AttentionPass pass) {
  constexpr std::array<std::array<std::size_t, 2>, 8> kSizes{
      {{64, 32}, {32, 32}, {32, 16}, {16, 16}, {8, 16}, {4, 16}, {4, 8}, {2, 4}}};
  const std::size_t group = context.limits().max_work_group;
  for (const auto& [own, other] : kSizes) {
    if (context.limits().is_cpu && own > 16) continue;
    Tiles tiles{own, other, std::min<std::size_t>(16, other), 1};
    while (tiles.tx > group) tiles.tx /= 2;
    while (tiles.ty < 8 && tiles.ty < own && 2 * tiles.ty * tiles.tx <= group) tiles.ty *= 2;
    const std::size_t sums =
        (pass == AttentionPass::backward_key_value ? 2 : 1) * own / tiles.ty * ((width + tiles.tx - 1) / tiles.tx);
    const bool is_small = own <= 4;  // more sums than registers hold, where memory leaves no other tile
    if (local_bytes(tiles, width, pass) <= context.limits().local_memory && (sums <= 64 || is_small)) return tiles;
  }
  throw NotSupported(fmt::format("{} with heads of {} values needs more local memory than the {} bytes of {}", name,
                                 width, context.limits().local_memory, context.name()));
}

std::unique_ptr<Kernel> prepare_plain(Context& context, const AttentionProblem& problem) {
  const AttentionPass pass = problem.pass;
  const Tiles tiles = tiles_for(context, problem.name, static_cast<std::size_t>(problem.sizes.width), pass);
  std::vector<std::string> definitions = attention_definitions(problem);
  for (const auto& [name, value] :
       {std::pair{"OWN", tiles.own}, {"OTHER", tiles.other}, {"TX", tiles.tx}, {"TY", tiles.ty}}) {
    definitions.push_back(fmt::format("{}={}", name, value));
  }
  const bool is_forward = pass == AttentionPass::forward;
  Stage stage{context.program(is_forward ? "ops/attention.cl" : "ops/attention_backward.cl", definitions),
              is_forward ? "attention_forward" : std::string(problem.name), attention_arguments(problem)};
  const std::size_t threads = tiles.tx * tiles.ty;
  stage.global = {(static_cast<std::size_t>(problem.rows()) + tiles.own - 1) / tiles.own * threads,
                  static_cast<std::size_t>(problem.row_heads()), static_cast<std::size_t>(problem.sizes.batch)};
  stage.local = {threads, 1, 1};
  return std::make_unique<StagedKernel>(context, fmt::format("{} {}x{}", problem.name, tiles.own, tiles.other),
                                        std::vector<StagedKernel::AnyStage>{std::move(stage)});
}

/// Whether a vector lies as tokens in 16 bits and all can.
bool lie_as_tokens(const AttentionProblem& problem, const KernelRequest& request) {
  const DType number = storage_number(request.precision);
  bool one_does = false;
  for (std::size_t i = 0; problem.is_vector(i); ++i) {
    if (!channels_last(request.inputs[i], number, ChannelAxis::last)) return false;
    const Layout& layout = request.input_layouts[i];
    one_does = one_does || as_channels_last(layout) != nullptr || as_channel_columns(layout) != nullptr;
  }
  return one_does;
}

/// The kernel on matrix cores that is expected to be the fastest, and sets whether it takes tokens; null without one.
std::unique_ptr<Kernel> prepare_on_matrix_cores(Context& context, AttentionProblem& problem,
                                                const KernelRequest& request) {
  OpenClAlternatives& alternatives = context.alternatives();
  const bool mma = attention_mma_supports(context, problem);
  problem.tokens = lie_as_tokens(problem, request);
  for (std::size_t i = 0; problem.tokens && i < problem.columns.size(); ++i) {
    const ChannelColumns* const columns = as_channel_columns(request.input_layouts[i]);
    if (columns != nullptr && attention_reads(problem.sizes, i, *columns))
      problem.columns[i] = request.input_layouts[i];
  }
  if (problem.tokens && attention_wgmma_supports(context, problem) &&
      alternatives.should_use(alternative::kAttentionWgmma, !mma || attention_wgmma_is_faster(problem))) {
    return prepare_attention_wgmma(context, problem);
  }
  if (mma && alternatives.should_use(alternative::kAttentionMma, true)) return prepare_attention_mma(context, problem);
  problem.tokens = false;
  problem.columns = {};
  return nullptr;
}

template <class Op>
PreparedKernel prepare(Context& context, const Op& op, const KernelRequest& request, AttentionPass pass) {
  AttentionProblem problem{pass, op.name(), op.form(), {}, request.outputs.size(), request.precision};
  problem.sizes = ops::attention_sizes(op.form(), request.inputs, problem.operands());
  CONCORD_CHECK(std::max(problem.sizes.queries, problem.sizes.keys) < std::int64_t{1} << 30, NotSupported,
                "{}: {} queries and {} keys; the limit of the kernel is below 2^30", op.name(), problem.sizes.queries,
                problem.sizes.keys);
  std::unique_ptr<Kernel> kernel = prepare_on_matrix_cores(context, problem, request);
  if (kernel == nullptr) kernel = prepare_plain(context, problem);
  if (!problem.tokens) return prepared(request, std::move(kernel));
  std::vector<std::size_t> inputs, outputs;
  for (std::size_t i = 0; i < problem.operands(); ++i) {
    if (problem.is_vector(i)) inputs.push_back(i);
  }
  for (std::size_t k = 0; k < request.outputs.size(); ++k) {
    if (problem.is_vector_output(k)) outputs.push_back(k);
  }
  // Of columns that are not those of `problem` the kernel gets tokens of their own.
  PreparedKernel answer =
      prepared_channels_last(without_columns(request), std::move(kernel), inputs, outputs, ChannelAxis::last);
  for (const std::size_t i : inputs) {
    if (problem.columns_of(i) != nullptr) answer.input_layouts[i] = problem.columns[i];
  }
  return answer;
}

PreparedKernel prepare_attention(Context& context, const ops::Attention& op, const KernelRequest& request) {
  return prepare(context, op, request, AttentionPass::forward);
}

PreparedKernel prepare_attention_backward_query(Context& context, const ops::AttentionBackwardQuery& op,
                                                const KernelRequest& request) {
  return prepare(context, op, request, AttentionPass::backward_query);
}

PreparedKernel prepare_attention_backward_key_value(Context& context, const ops::AttentionBackwardKeyValue& op,
                                                    const KernelRequest& request) {
  return prepare(context, op, request, AttentionPass::backward_key_value);
}

}  // namespace

bool attention_reads(const ops::AttentionSizes& sizes, std::size_t i, const ChannelColumns& columns) {
  return sizes.by_tokens() && columns.axis() == ChannelAxis::last &&
         columns.columns() == (i == 0 ? sizes.query_pitch() : sizes.key_pitch());
}

std::vector<std::string> attention_definitions(const AttentionProblem& problem) {
  const ops::AttentionForm& form = problem.form;
  std::vector<std::string> list{fmt::format("WIDTH={}", problem.sizes.width)};
  if (form.causal == ops::Causal::first) list.emplace_back("CAUSAL_FIRST");
  if (form.causal == ops::Causal::last) list.emplace_back("CAUSAL_LAST");
  if (problem.sizes.by_tokens()) {
    list.insert(list.end(),
                {"TOKENS_FIRST", fmt::format("QUERY_PITCH={}", problem.sizes.query_pitch()),
                 fmt::format("KEY_PITCH={}", problem.sizes.key_pitch()), fmt::format("Q_PITCH={}", problem.pitch(0)),
                 fmt::format("K_PITCH={}", problem.pitch(1)), fmt::format("V_PITCH={}", problem.pitch(2))});
  }
  if (form.mask) list.emplace_back("MASK");
  if (form.lengths) list.emplace_back("LENGTHS");
  if (form.dropout > 0) list.emplace_back("DROPOUT");
  return list;
}

std::vector<Argument> attention_arguments(const AttentionProblem& problem, std::span<const Argument> maps) {
  const ops::AttentionForm& form = problem.form;
  const ops::AttentionSizes& s = problem.sizes;
  const std::size_t of_vectors = problem.tokens ? 2 : 4;
  std::vector<Argument> arguments;
  for (std::size_t i = 0; i < problem.operands(); ++i) {
    arguments.emplace_back(problem.is_vector(i) ? problem.vectors(i) : input(i));
  }
  for (std::size_t k = 0; k < problem.outputs; ++k) {
    arguments.emplace_back(output(k, problem.is_vector_output(k) ? of_vectors : 4));
  }
  arguments.insert(arguments.end(), maps.begin(), maps.end());
  for (const std::int64_t size : {s.heads, s.key_heads, s.queries, s.keys}) {
    arguments.emplace_back(static_cast<std::uint32_t>(size));
  }
  arguments.emplace_back(form.scale);
  if (form.mask) {
    arguments.emplace_back(input(s.mask));
    for (const std::int64_t stride : s.mask_strides) arguments.emplace_back(static_cast<std::uint64_t>(stride));
  }
  if (form.lengths) arguments.emplace_back(input(s.lengths));
  if (form.dropout > 0) {
    arguments.insert(arguments.end(), {input(s.state), form.purpose, form.keep(), form.kept()});
  }
  return arguments;
}

void add_attention(Kernels& kernels) {
  kernels.add<ops::Attention, prepare_attention>();
  kernels.add<ops::AttentionBackwardQuery, prepare_attention_backward_query>();
  kernels.add<ops::AttentionBackwardKeyValue, prepare_attention_backward_key_value>();
}

}  // namespace concord::opencl
