// Gather and scatter-add along an axis; threads own lines of the axis, so that sums run in the order of the indices.
#include "concord/ops/gather_along.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "concord/ops/axis.hpp"
#include "kernels.hpp"

namespace concord::cpu {
namespace {

/// The sizes of a line: along the axis, and along the indices into it.
struct Lines {
  std::int64_t outer, length, inner, count;
  DType type;
  int threads;
};

template <class Function>
void for_lines(const Lines& s, const Function& function) {
  const std::int64_t lines = s.outer * s.inner;
  parallel_for(lines, s.threads, lines * (s.length + s.count) >= kParallelElements, [&](std::int64_t line) {
    const std::int64_t outer = line / s.inner, in = line % s.inner;
    function(outer * s.length * s.inner + in, outer * s.count * s.inner + in);
  });
}

template <class T>
void gather_lines(const Lines& s, const Pointers& pointers, T outside) {
  const T* src = pointers.input<T>(0);
  const std::int32_t* indices = pointers.input<std::int32_t>(1);
  T* dst = pointers.output<T>(0);
  for_lines(s, [&](std::int64_t axis, std::int64_t line) {
    for (std::int64_t i = 0; i < s.count; ++i) {
      const std::int64_t place = line + i * s.inner, index = indices[place];
      dst[place] = index >= 0 && index < s.length ? src[axis + index * s.inner] : outside;
    }
  });
}

void scatter_lines(const Lines& s, const Pointers& pointers) {
  const float* src = pointers.input<float>(0);
  const std::int32_t* indices = pointers.input<std::int32_t>(1);
  float* dst = pointers.output<float>(0);
  for_lines(s, [&](std::int64_t axis, std::int64_t line) {
    for (std::int64_t r = 0; r < s.length; ++r) dst[axis + r * s.inner] = 0;
    for (std::int64_t i = 0; i < s.count; ++i) {
      const std::int64_t place = line + i * s.inner, index = indices[place];
      if (index >= 0 && index < s.length) dst[axis + index * s.inner] += src[place];
    }
  });
}

Lines lines_of(const Backend& backend, const TensorSpec& axis, const Shape& indices, std::size_t number) {
  const ops::AxisSizes s = ops::axis_sizes(axis.shape, number);
  return {s.outer, s.length, s.inner, indices.dims()[number], axis.dtype, backend.threads};
}

PreparedKernel prepare_gather_along(Backend& backend, const ops::GatherAlong& op, const KernelRequest& request) {
  const Lines s = lines_of(backend, request.inputs[0], request.inputs[1].shape, op.axis());
  return all_plain(request, loop_kernel("gather lines", 0, [s](const Pointers& pointers) {
                     switch (size_of(s.type)) {
                       case 1: return gather_lines<std::uint8_t>(s, pointers, 0);
                       case 2: return gather_lines<std::uint16_t>(s, pointers, 0);
                       default: break;
                     }
                     constexpr std::uint32_t kNan = 0x7fc00000U;
                     gather_lines<std::uint32_t>(s, pointers, s.type == DType::f32 ? kNan : 0);
                   }));
}

PreparedKernel prepare_scatter_add_along(Backend& backend, const ops::ScatterAddAlong& op,
                                         const KernelRequest& request) {
  const Lines s = lines_of(backend, request.outputs[0], request.inputs[1].shape, op.axis());
  return all_plain(request,
                   loop_kernel("scatter_add lines", 0, [s](const Pointers& pointers) { scatter_lines(s, pointers); }));
}

}  // namespace

void add_gather_along(Kernels& kernels) {
  kernels.add<ops::GatherAlong, prepare_gather_along>();
  kernels.add<ops::ScatterAddAlong, prepare_scatter_add_along>();
}

}  // namespace concord::cpu
