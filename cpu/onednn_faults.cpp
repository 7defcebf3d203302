// The rows of the table that depend on an implementation.
#include "onednn_faults.hpp"

namespace concord::cpu {

bool is_faulty_backward_weights(std::string_view implementation, const ops::ConvSizes& sizes) {
  constexpr std::int64_t kLanes = 16;
  const bool has_stride = sizes.options.stride != ops::Spatial{1, 1, 1};
  return implementation.starts_with("jit_1x1") && has_stride && sizes.group_c() % kLanes != 0;
}

}  // namespace concord::cpu
