# Writes OUTPUT: every file of the list KERNELS as a table entry {"path below ROOT", "text"}.
set(table "")
foreach(kernel IN LISTS KERNELS)
  file(RELATIVE_PATH name "${ROOT}" "${kernel}")
  file(READ "${kernel}" text)
  # A raw string literal may hold at most 65536 characters portably; kernel files are far smaller.
  string(APPEND table "    {\"${name}\", R\"concord_cl(${text})concord_cl\"},\n")
endforeach()
file(WRITE "${OUTPUT}" "// Generated from cl_kernels/.
#include \"concord/opencl/program/source.hpp\"

namespace concord::opencl {
namespace {
const KernelSource kSources[] = {
${table}};
}  // namespace
std::span<const KernelSource> kernel_sources() { return kSources; }
}  // namespace concord::opencl
")
