// The rows of the table that depend on an implementation or a size.
#include "onednn_faults.hpp"

#include <cstdint>
#include <limits>

#include "concord/core/check.hpp"

namespace concord::cpu {

bool is_faulty_backward_weights(std::string_view implementation, const ops::ConvSizes& sizes) {
  constexpr std::int64_t kLanes = 16;
  const bool has_stride = sizes.options.stride != ops::Spatial{1, 1, 1};
  return implementation.starts_with("jit_1x1") && has_stride && sizes.group_c() % kLanes != 0;
}

bool is_faulty_sum(std::string_view implementation, std::int64_t channels) {
  constexpr std::int64_t kLanes = 4;
  return implementation.starts_with("jit_dw:sse41") && channels % kLanes != 0;
}

bool is_faulty_in_bf16(const ops::ConvSizes& sizes) {
  const ops::Spatial kernel{sizes.kd, sizes.kh, sizes.kw};
  bool is_shorter = false;
  for (std::size_t i = 0; i < kernel.size(); ++i) is_shorter = is_shorter || kernel[i] < sizes.options.stride[i];
  return is_shorter && sizes.taps() > 1;
}

bool is_faulty_backward_weights_in_bf16(const ops::ConvSizes& sizes) {
  return is_faulty_in_bf16(sizes) || sizes.options.dilation != ops::Spatial{1, 1, 1};
}

void check_countable(const KernelRequest& request) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  for (const auto* specs : {&request.inputs, &request.outputs}) {
    for (const TensorSpec& spec : *specs) {
      for (const std::int64_t dim : spec.shape.dims()) {
        CONCORD_CHECK(dim <= kMost, NotSupported,
                      "{} on the CPU: {} along an axis of {}, the limit of oneDNN is {}: split the operand",
                      request.op->name(), dim, spec.shape.str(), kMost);
      }
    }
  }
}

}  // namespace concord::cpu
