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
