// Attention and its gradients on OpenCL devices: one kernel each, with tiles as large as the local memory allows.
#include <algorithm>

#include "concord/core/check.hpp"
#include "concord/opencl/kernels.hpp"

namespace concord::opencl {
namespace {

using ops::AttentionForm;
using ops::AttentionSizes;

/// Rows that a work-group owns, rows of a tile of the other side, and the grid of its items (cl_kernels/attention.h).
struct Tiles {
  std::size_t own, other, tx, ty;
};

/// What the work-groups of a kernel own: rows of queries with one tile in local memory (the forward pass) or two, or
/// rows of keys.
enum class Owned { queries, queries_twice, keys };

std::size_t local_bytes(const Tiles& tiles, std::size_t width, Owned owned) {
  const std::size_t stride = 4 * ((((width + tiles.tx - 1) / tiles.tx * tiles.tx + 3) / 4) | 1);
  const std::size_t rows = (owned == Owned::queries ? 1 : 2) * tiles.own + tiles.other;
  const std::size_t scratch = owned == Owned::queries ? tiles.own * tiles.tx : 0;
  return sizeof(float) * (rows * stride + tiles.own * (tiles.other + 4) + scratch);
}

/// The first that fits: an item has at most 64 sums in registers.
Tiles tiles_for(const Context& context, std::string_view name, std::size_t width, Owned owned) {
  constexpr std::array<std::array<std::size_t, 2>, 6> kSizes{{{64, 32}, {32, 32}, {32, 16}, {16, 16}, {8, 16}, {4, 16}}};
  const std::size_t group = context.limits().max_work_group;
  for (const auto& [own, other] : kSizes) {
    Tiles tiles{own, other, 16, 1};
    while (tiles.tx > group) tiles.tx /= 2;
    while (tiles.ty < 8 && tiles.ty < own && 2 * tiles.ty * tiles.tx <= group) tiles.ty *= 2;
    const std::size_t sums = (owned == Owned::keys ? 2 : 1) * own / tiles.ty * ((width + tiles.tx - 1) / tiles.tx);
    const bool is_last = own == kSizes.back()[0];
    if (local_bytes(tiles, width, owned) <= context.limits().local_memory && (sums <= 64 || is_last)) return tiles;
  }
  throw NotSupported(fmt::format("{} with heads of {} values needs more local memory than the {} bytes of {}", name,
                                 width, context.limits().local_memory, context.name()));
}

std::vector<std::string> definitions_of(const AttentionForm& form, const Tiles& tiles, std::int64_t width) {
  std::vector<std::string> list{fmt::format("WIDTH={}", width), fmt::format("OWN={}", tiles.own),
                                fmt::format("OTHER={}", tiles.other), fmt::format("TX={}", tiles.tx),
                                fmt::format("TY={}", tiles.ty)};
  if (form.causal == ops::Causal::first) list.emplace_back("CAUSAL_FIRST");
  if (form.causal == ops::Causal::last) list.emplace_back("CAUSAL_LAST");
  if (form.mask) list.emplace_back("MASK");
  if (form.lengths) list.emplace_back("LENGTHS");
  if (form.dropout > 0) list.emplace_back("DROPOUT");
  return list;
}

template <class Op>
PreparedKernel prepare(Context& context, const Op& op, const KernelRequest& request, std::string_view file,
                       std::size_t operands, Owned owned) {
  const AttentionForm& form = op.form();
  const AttentionSizes s = ops::attention_sizes(form, request.inputs, operands);
  CONCORD_CHECK(std::max(s.queries, s.keys) < std::int64_t{1} << 30, NotSupported,
                "{}: {} queries and {} keys; the kernel takes less than 2^30", op.name(), s.queries, s.keys);
  const Tiles tiles = tiles_for(context, op.name(), static_cast<std::size_t>(s.width), owned);
  std::vector<Argument> arguments;
  for (std::size_t i = 0; i < operands; ++i) arguments.emplace_back(input(i));
  for (std::size_t i = 0; i < request.outputs.size(); ++i) arguments.emplace_back(output(i));
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
    arguments.insert(arguments.end(), {input(s.state), form.purpose, 1 - form.dropout, form.kept()});
  }
  Stage stage{context.program(file, definitions_of(form, tiles, s.width)), std::string(op.name()),
              std::move(arguments)};
  if (stage.function == "attention") stage.function = "attention_forward";
  const std::size_t threads = tiles.tx * tiles.ty;
  const auto rows = static_cast<std::size_t>(owned == Owned::keys ? s.keys : s.queries);
  stage.global = {(rows + tiles.own - 1) / tiles.own * threads,
                  static_cast<std::size_t>(owned == Owned::keys ? s.key_heads : s.heads),
                  static_cast<std::size_t>(s.batch)};
  stage.local = {threads, 1, 1};
  return prepared(request, std::make_unique<StagedKernel>(
                               context, fmt::format("{} {}x{}", op.name(), tiles.own, tiles.other),
                               std::vector<StagedKernel::AnyStage>{std::move(stage)}));
}

}  // namespace

PreparedKernel prepare_attention(Context& context, const ops::Attention& op, const KernelRequest& request) {
  return prepare(context, op, request, "attention.cl", 3, Owned::queries);
}

PreparedKernel prepare_attention_backward_query(Context& context, const ops::AttentionBackwardQuery& op,
                                                const KernelRequest& request) {
  return prepare(context, op, request, "attention_backward.cl", 6, Owned::queries_twice);
}

PreparedKernel prepare_attention_backward_key_value(Context& context, const ops::AttentionBackwardKeyValue& op,
                                                    const KernelRequest& request) {
  return prepare(context, op, request, "attention_backward.cl", 6, Owned::keys);
}

}  // namespace concord::opencl
