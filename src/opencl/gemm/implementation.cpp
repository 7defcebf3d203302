// What several implementations share.
#include "concord/opencl/gemm/implementation.hpp"

#include "concord/opencl/driver/capability.hpp"
#include "concord/opencl/gemm/split.hpp"
#include "concord/opencl/launch/context.hpp"

namespace concord::opencl {

bool is_hopper(const Context& context) { return context.capability().is_hopper(); }

bool has_mma(const Context& context) { return context.capability().has_matrix_cores(); }

std::vector<std::int64_t> parts_around(std::int64_t planned) {
  std::vector<std::int64_t> list{1};
  for (const std::int64_t parts : {planned / 2, planned, 2 * planned}) {
    if (parts > list.back()) list.push_back(parts);
  }
  return list;
}

std::vector<std::int64_t> parts_around(std::int64_t planned, std::int64_t k, std::int64_t unit) {
  std::vector<std::int64_t> list;
  for (const std::int64_t wanted : parts_around(planned)) {
    const std::int64_t parts = split_of(k, wanted, unit).parts;
    if (list.empty() || parts > list.back()) list.push_back(parts);
  }
  return list;
}

}  // namespace concord::opencl
