// The OpenCL C sources embedded by the build, by file name below cl_kernels/.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace concord::opencl {

struct KernelSource {
  std::string_view name;  // "conv/pad.cl"
  std::string_view text;
};
[[nodiscard]] std::span<const KernelSource> kernel_sources();

/// The text of one file with its `#include "…"` lines replaced by the files they name. When the option kernel_dir of
/// CONCORD_DEBUG is set, the files are read from that folder, so that kernels can be changed without a rebuild. Throws
/// Error for a name that was not embedded.
[[nodiscard]] std::string kernel_source(std::string_view name);

/// Statements that do, in work-group `group` of a launch for several members, what `text` gives for the member to which
/// it belongs. Member i has the groups up to m{i}_end, a number of the kernel. The number of comparisons is the
/// logarithm of that of the members.
[[nodiscard]] std::string text_by_group(std::size_t members, const std::function<std::string(std::size_t)>& text);

/// When the option source_dir of CONCORD_DEBUG names a folder, writes each requested program there as a file, for use
/// with other compilers. The first line of the file is "// " and the build options. Throws IoError.
void keep_source(const std::string& source, const std::string& options);

}  // namespace concord::opencl
