// The copy family: transpose is a oneDNN reorder; slice, pad and concat are strided copies that keep the layout they
// are given.
#include "concord/ops/copy.hpp"

#include <algorithm>
#include <cstring>

#include "concord/core/check.hpp"
#include "concord/ops/all_reduce.hpp"
#include "kernels.hpp"
#include "strided.hpp"
#include "tile.hpp"

namespace concord::cpu {
namespace {

// A rectangle of elements moved between two tensors: strides[0] of the source, strides[1] of the destination.
struct Region {
  StridedView view;
  std::int64_t src_offset = 0, dst_offset = 0;  // elements
};

template <class T>
void copy_region(const Region& region, const std::byte* src, std::byte* dst, int threads) {
  const auto& dims = region.view.dims;
  const std::size_t inner = dims.size() - 1;
  const auto& from = region.view.strides[0];
  const auto& to = region.view.strides[1];
  std::int64_t rows = 1;
  for (std::size_t d = 0; d < inner; ++d) rows *= dims[d];
  parallel_for(rows, threads, rows * dims[inner] >= kParallelElements, [&](std::int64_t row) {
    const T* a = reinterpret_cast<const T*>(src) + region.src_offset + offset_of(row, dims, from, inner);
    T* b = reinterpret_cast<T*>(dst) + region.dst_offset + offset_of(row, dims, to, inner);
    if (from[inner] == 1 && to[inner] == 1) {
      std::memcpy(b, a, static_cast<std::size_t>(dims[inner]) * sizeof(T));
    } else {
      for (std::int64_t i = 0; i < dims[inner]; ++i) b[i * to[inner]] = a[i * from[inner]];
    }
  });
}

void copy_region(const Region& region, DType type, const std::byte* src, std::byte* dst, int threads) {
  if (std::find(region.view.dims.begin(), region.view.dims.end(), 0) != region.view.dims.end()) return;
  switch (size_of(type)) {
    case 1: return copy_region<std::uint8_t>(region, src, dst, threads);
    case 2: return copy_region<std::uint16_t>(region, src, dst, threads);
    default: return copy_region<std::uint32_t>(region, src, dst, threads);
  }
}

// The layout of the copy: channels-last if the source is, in its stored type. The stride of every dimension of both
// tensors.
struct Ends {
  Layout src, dst;
  DType type;
  std::vector<std::int64_t> src_strides, dst_strides;
};

Ends ends_of(const TensorSpec& src, const Layout& offered, const TensorSpec& dst) {
  Ends ends;
  ends.type = stored_type(src, offered);
  if (is_channels_last(src, offered)) {
    ends.src = offered;
    ends.dst = channels_last(dst, ends.type);
  } else {
    ends.src = row_major(src, ends.type);
    ends.dst = row_major(dst, ends.type);
  }
  ends.src_strides = strides_in(src, ends.src);
  ends.dst_strides = strides_in(dst, ends.dst);
  return ends;
}

// The dimensions of `shape`, ordered by falling stride at the destination, so that copies write forward.
StridedView view_of(const Shape& shape, std::vector<std::int64_t> from, std::vector<std::int64_t> to) {
  std::vector<std::size_t> order(shape.rank());
  for (std::size_t d = 0; d < order.size(); ++d) order[d] = d;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return to[a] > to[b]; });
  return collapse(permute({{shape.dims().begin(), shape.dims().end()}, {std::move(from), std::move(to)}}, order));
}

void fill_all(std::byte* dst, const TensorSpec& spec, float value, int threads) {
  const std::int64_t elements = spec.shape.elements(), width = static_cast<std::int64_t>(size_of(spec.dtype));
  parallel_parts(elements, threads, elements >= kParallelElements,
                 [&](std::int64_t, std::int64_t begin, std::int64_t end) {
                   tile_store({.data = &value, .scalar = true}, spec.dtype, dst + begin * width, end - begin);
                 });
}

PreparedKernel prepare_transpose(Backend&, const ops::Transpose& op, const KernelRequest& request) {
  const DType stored = is_row_major(request.input_layouts[0]) ? stored_type(request.inputs[0], request.input_layouts[0])
                                                              : request.inputs[0].dtype;
  const Desc dst = plain_desc(stored_as(request.outputs[0], stored));
  if (request.outputs[0].shape.rank() == 0) return all_plain(request, reorder_kernel(dst, dst));
  const auto src_strides = request.inputs[0].shape.strides();
  Dims strides;
  for (const std::size_t d : op.order()) strides.push_back(src_strides[d]);
  const Desc src(dims_of(dst), data_type_of(stored), strides);
  return {.kernel = reorder_kernel(src, dst),
          .input_layouts = {row_major(request.inputs[0], stored)},
          .output_layouts = {row_major(request.outputs[0], stored)}};
}

PreparedKernel prepare_all_reduce(Backend&, const ops::AllReduce&, const KernelRequest& request) {
  const Desc plain = plain_desc(request.outputs[0]);
  return all_plain(request, reorder_kernel(plain, plain));
}

PreparedKernel prepare_slice(Backend& backend, const ops::Slice& op, const KernelRequest& request) {
  const Ends ends = ends_of(request.inputs[0], request.input_layouts[0], request.outputs[0]);
  Region region;
  std::vector<std::int64_t> from(ends.src_strides);
  for (std::size_t d = 0; d < from.size(); ++d) {
    region.src_offset += op.start()[d] * ends.src_strides[d];
    from[d] *= op.step()[d];
  }
  region.view = view_of(request.outputs[0].shape, from, ends.dst_strides);
  Loop loop = [region, type = ends.type, threads = backend.threads](const Pointers& p) {
    copy_region(region, type, p.input<std::byte>(0), p.output<std::byte>(0), threads);
  };
  return {
      .kernel = loop_kernel("slice", 0, std::move(loop)), .input_layouts = {ends.src}, .output_layouts = {ends.dst}};
}

PreparedKernel prepare_pad(Backend& backend, const ops::Pad& op, const KernelRequest& request) {
  const TensorSpec& dst = request.outputs[0];
  CONCORD_CHECK(dst.dtype == DType::f32 || dst.dtype == DType::i32 || dst.dtype == DType::u8, NotSupported,
                "pad of {} on the CPU", dst.str());
  const Ends ends = ends_of(request.inputs[0], request.input_layouts[0], dst);
  Region region;
  std::vector<std::int64_t> to(ends.dst_strides);
  for (std::size_t d = 0; d < to.size(); ++d) {
    region.dst_offset += op.before()[d] * ends.dst_strides[d];
    to[d] *= op.step()[d];
  }
  region.view = view_of(request.inputs[0].shape, ends.src_strides, to);
  Loop loop = [region, dst = stored_as(dst, ends.type), value = op.value(),
               threads = backend.threads](const Pointers& p) {
    fill_all(p.output<std::byte>(0), dst, value, threads);
    copy_region(region, dst.dtype, p.input<std::byte>(0), p.output<std::byte>(0), threads);
  };
  return {.kernel = loop_kernel("pad", 0, std::move(loop)), .input_layouts = {ends.src}, .output_layouts = {ends.dst}};
}

/// How the parts of a concatenation are stored: channels-last if all are, or could be as well; in bf16 if all are.
struct PartsStorage {
  bool is_last;
  DType type;
  [[nodiscard]] Layout of(const TensorSpec& spec) const {
    return is_last ? channels_last(spec, type) : row_major(spec, type);
  }
};

PartsStorage storage_of_parts(const KernelRequest& request) {
  const TensorSpec& dst = request.outputs[0];
  bool last = dst.shape.rank() == 4, narrow = true;
  for (std::size_t i = 0; i < request.inputs.size(); ++i) {
    const TensorSpec& src = request.inputs[i];
    const Layout& layout = request.input_layouts[i];
    const bool either = is_row_major(layout) && dst.shape.rank() == 4 && !channels_last(src);
    last = last && (either || is_channels_last(src, layout));
    narrow = narrow && stored_type(src, layout) == DType::bf16;
  }
  return {last, narrow ? DType::bf16 : dst.dtype};
}

PreparedKernel prepare_concat(Backend& backend, const ops::Concat& op, const KernelRequest& request) {
  const TensorSpec& dst = request.outputs[0];
  const PartsStorage storage = storage_of_parts(request);
  PreparedKernel prepared{.kernel = nullptr, .input_layouts = {}, .output_layouts = {storage.of(dst)}};
  const auto dst_strides = strides_in(dst, prepared.output_layouts[0]);
  std::vector<Region> regions;
  std::int64_t position = 0;
  for (const TensorSpec& src : request.inputs) {
    prepared.input_layouts.push_back(storage.of(src));
    Region region{.view = view_of(src.shape, strides_in(src, prepared.input_layouts.back()), dst_strides)};
    region.dst_offset = position * dst_strides[op.axis()];
    position += src.shape.dims()[op.axis()];
    regions.push_back(std::move(region));
  }
  prepared.kernel =
      loop_kernel("concat", 0, [regions, type = storage.type, threads = backend.threads](const Pointers& p) {
        for (std::size_t i = 0; i < regions.size(); ++i) {
          copy_region(regions[i], type, p.input<std::byte>(i), p.output<std::byte>(0), threads);
        }
      });
  return prepared;
}

}  // namespace

void add_copy(Kernels& kernels) {
  kernels.add<ops::Transpose, prepare_transpose>();
  kernels.add<ops::AllReduce, prepare_all_reduce>();
  kernels.add<ops::Slice, prepare_slice>();
  kernels.add<ops::Pad, prepare_pad>();
  kernels.add<ops::Concat, prepare_concat>();
}

}  // namespace concord::cpu
