// What a tuner tries around a plan.
#include "concord/opencl/gemm/implementation.hpp"

namespace concord::opencl {

std::vector<std::int64_t> parts_around(std::int64_t planned) {
  std::vector<std::int64_t> list{1};
  for (const std::int64_t parts : {planned / 2, planned, 2 * planned}) {
    if (parts > list.back()) list.push_back(parts);
  }
  return list;
}

}  // namespace concord::opencl
