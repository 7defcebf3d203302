// Reduce: the tensor as kept × reduced elements, the reduced ones in chunks whose number depends on the shape alone; a
// chunk is one thread's, and chunks are combined in order. So the result does not depend on the number of threads.
#include "concord/ops/reduce.hpp"

#include <algorithm>
#include <cmath>

#include "kernels.hpp"
#include "reduce_simd.hpp"
#include "strided.hpp"

namespace concord::cpu {
namespace {

using ops::ReduceKind;
constexpr std::int64_t kChunkElements = 16384;
constexpr std::int64_t kMostChunks = 128;

struct ReducePlan {
  ReduceKind kind;
  StridedView kept;     // strides: source, destination
  StridedView reduced;  // strides: source
  bool columns;         // kept elements are neighbours: whole rows are combined
  std::int64_t kept_count, reduced_count, lanes, groups, chunks;
  int threads;
};

std::int64_t count_of(const StridedView& view) {
  std::int64_t count = 1;
  for (const std::int64_t dim : view.dims) count *= dim;
  return count;
}

// Splits the axes of `src`, stored as `layout`, in kept and reduced ones; outputs are row-major.
ReducePlan plan_of(const ops::Reduce& op, const KernelRequest& request, const Layout& layout, int threads) {
  const TensorSpec& src = request.inputs[0];
  const auto src_strides = strides_in(src, layout);
  const auto dst_strides = request.outputs[0].shape.strides();
  std::vector<std::size_t> order(src.shape.rank());
  for (std::size_t d = 0; d < order.size(); ++d) order[d] = d;
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return src_strides[a] > src_strides[b]; });
  ReducePlan plan{.kind = op.kind(),
                  .kept = {{}, {{}, {}}},
                  .reduced = {{}, {{}}},
                  .columns = false,
                  .kept_count = 0,
                  .reduced_count = 0,
                  .lanes = 1,
                  .groups = 1,
                  .chunks = 1,
                  .threads = threads};
  for (const std::size_t d : order) {
    const bool is_reduced = std::find(op.axes().begin(), op.axes().end(), d) != op.axes().end();
    StridedView& view = is_reduced ? plan.reduced : plan.kept;
    view.dims.push_back(src.shape.dims()[d]);
    view.strides[0].push_back(src_strides[d]);
    if (!is_reduced) view.strides[1].push_back(dst_strides[d]);
  }
  plan.kept = collapse(plan.kept);
  plan.reduced = collapse(plan.reduced);
  plan.kept_count = count_of(plan.kept);
  plan.reduced_count = count_of(plan.reduced);
  plan.columns = plan.kept.dims.back() > 1 && plan.kept.strides[0].back() == 1;
  if (plan.columns) plan.lanes = std::min(plan.kept.dims.back(), kReduceLanes);
  const std::int64_t inner = plan.columns ? plan.kept.dims.back() : 1;
  plan.groups = plan.kept_count / std::max<std::int64_t>(inner, 1) * ((inner + plan.lanes - 1) / plan.lanes);
  const std::int64_t work = plan.reduced_count * plan.lanes / kChunkElements;
  const std::int64_t wanted = kMostChunks / std::max<std::int64_t>(plan.groups, 1);
  plan.chunks = std::clamp<std::int64_t>(std::min(work, wanted), 1, kMostChunks);
  return plan;
}

// Reduces elements [begin, end) of the reduced ones of a group into result[0 … lanes).
template <class Stored>
void reduce_range(const ReducePlan& plan, const Stored* src, std::int64_t lanes, std::int64_t begin, std::int64_t end,
                  double* result) {
  const std::size_t inner = plan.reduced.dims.size() - 1;
  const std::int64_t row = plan.reduced.dims[inner];
  const std::int64_t stride = plan.reduced.strides[0][inner];
  for (std::int64_t at = begin; at < end;) {
    const std::int64_t column = at % row;
    const std::int64_t count = std::min(row - column, end - at);
    const Stored* piece =
        src + offset_of(at / row, plan.reduced.dims, plan.reduced.strides[0], inner) + column * stride;
    if (!plan.columns) {
      *result = reduce_combine(plan.kind, *result, reduce_row(plan.kind, piece, count, stride));
    } else if (stride == lanes && 2 * lanes <= kReduceLanes && count > 1) {
      // Rows without gaps: several contiguous rows form one long row, which is folded at the end.
      const std::int64_t fold = std::min(kReduceLanes / lanes, count);
      double wide[kReduceLanes];
      std::fill_n(wide, fold * lanes, reduce_identity(plan.kind));
      reduce_columns(plan.kind, piece, count / fold, fold * lanes, fold * lanes, wide);
      reduce_columns(plan.kind, piece + count / fold * fold * lanes, count % fold, lanes, lanes, wide);
      for (std::int64_t j = 0; j < fold * lanes; ++j) {
        result[j % lanes] = reduce_combine(plan.kind, result[j % lanes], wide[j]);
      }
    } else {
      reduce_columns(plan.kind, piece, count, stride, lanes, result);
    }
    at += count;
  }
}

// Where a group's elements start in source and destination, and how many they are.
struct Group {
  std::int64_t src, dst, lanes, first;
};

Group group_of(const ReducePlan& plan, std::int64_t group) {
  const std::int64_t inner = plan.columns ? plan.kept.dims.back() : 1;
  const std::int64_t blocks = (inner + plan.lanes - 1) / plan.lanes;
  const std::int64_t first = group / blocks * inner + group % blocks * plan.lanes;
  const std::size_t rank = plan.kept.dims.size();
  return {.src = offset_of(first, plan.kept.dims, plan.kept.strides[0], rank),
          .dst = offset_of(first, plan.kept.dims, plan.kept.strides[1], rank),
          .lanes = std::min(plan.lanes, inner - group % blocks * plan.lanes),
          .first = first};
}

template <class Stored>
void run(const ReducePlan& plan, const Pointers& pointers) {
  const auto* src = pointers.input<Stored>(0);
  float* dst = pointers.output<float>(0);
  double* partial = pointers.workspace<double>();  // (chunks, kept)
  const bool parallel = plan.kept_count * plan.reduced_count >= kParallelElements;
  const std::int64_t dst_stride = plan.kept.strides[1].back();
  parallel_for(plan.groups * plan.chunks, plan.threads, parallel, [&](std::int64_t unit) {
    const std::int64_t chunk = unit % plan.chunks;
    const Group group = group_of(plan, unit / plan.chunks);
    double result[kReduceLanes];
    std::fill_n(result, group.lanes, reduce_identity(plan.kind));
    reduce_range(plan, src + group.src, group.lanes, plan.reduced_count * chunk / plan.chunks,
                 plan.reduced_count * (chunk + 1) / plan.chunks, result);
    if (plan.chunks > 1) {
      std::copy_n(result, group.lanes, partial + chunk * plan.kept_count + group.first);
    } else {
      for (std::int64_t j = 0; j < group.lanes; ++j) {
        dst[group.dst + j * dst_stride] = reduce_finished(plan.kind, result[j]);
      }
    }
  });
  if (plan.chunks == 1) return;
  for (std::int64_t k = 0; k < plan.kept_count; ++k) {
    double result = partial[k];
    for (std::int64_t c = 1; c < plan.chunks; ++c) {
      result = reduce_combine(plan.kind, result, partial[c * plan.kept_count + k]);
    }
    dst[offset_of(k, plan.kept.dims, plan.kept.strides[1], plan.kept.dims.size())] = reduce_finished(plan.kind, result);
  }
}

// The first winner along the axis; a NaN wins.
void run_argmax(const ReducePlan& plan, const Pointers& pointers) {
  const float* src = pointers.input<float>(0);
  auto* dst = pointers.output<std::int32_t>(0);
  const std::size_t rank = plan.kept.dims.size();
  const bool parallel = plan.kept_count * plan.reduced_count >= kParallelElements;
  parallel_for(plan.kept_count, plan.threads, parallel, [&](std::int64_t k) {
    const float* line = src + offset_of(k, plan.kept.dims, plan.kept.strides[0], rank);
    const std::int64_t stride = plan.reduced.strides[0].back();
    std::int64_t best = 0;
    for (std::int64_t i = 1; i < plan.reduced_count && !std::isnan(line[best * stride]); ++i) {
      if (!(line[i * stride] <= line[best * stride])) best = i;
    }
    dst[offset_of(k, plan.kept.dims, plan.kept.strides[1], rank)] = static_cast<std::int32_t>(best);
  });
}

PreparedKernel prepare_reduce(Backend& backend, const ops::Reduce& op, const KernelRequest& request) {
  const TensorSpec& src = request.inputs[0];
  Layout layout = request.input_layouts[0];
  const bool is_sum = op.kind() == ReduceKind::sum;
  if (!is_sum && layout) layout = is_channels_last(src, layout) ? channels_last(src) : nullptr;
  if (!is_row_major(layout) && !is_channels_last(src, layout)) layout = nullptr;
  ReducePlan plan = plan_of(op, request, layout, backend.threads);
  PreparedKernel prepared{.kernel = nullptr, .input_layouts = {layout}, .output_layouts = {nullptr}};
  if (op.kind() == ReduceKind::argmax) {
    prepared.kernel = loop_kernel("argmax", 0, [plan](const Pointers& pointers) { run_argmax(plan, pointers); });
  } else {
    const auto partials = plan.chunks > 1 ? static_cast<std::size_t>(plan.chunks * plan.kept_count) : 0;
    const bool is_narrow = stored_type(src, layout) == DType::bf16;
    prepared.kernel = loop_kernel(plan.columns ? "reduce columns" : "reduce rows", partials * sizeof(double),
                                  [plan, is_narrow](const Pointers& pointers) {
                                    is_narrow ? run<Bf16>(plan, pointers) : run<float>(plan, pointers);
                                  });
  }
  return prepared;
}

}  // namespace

void add_reduce(Kernels& kernels) { kernels.add<ops::Reduce, prepare_reduce>(); }

}  // namespace concord::cpu
