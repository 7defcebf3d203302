// The OpenCL C sources embedded by the build, by file name below cl_kernels/.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace concord::opencl {

struct KernelSource {
  std::string_view name;  // "conv/pad.cl"
  std::string_view text;
};
[[nodiscard]] std::span<const KernelSource> kernel_sources();

/// The text of one file with its `#include "…"` lines replaced by the files they name. When the environment variable
/// the option kernel_dir of CONCORD_DEBUG is set, files come from that folder: kernels can be changed without a
/// rebuild. Throws Error for a name that was not embedded.
[[nodiscard]] std::string kernel_source(std::string_view name);

/// Where the option source_dir of CONCORD_DEBUG names a folder, a program that a device is asked for is written there
/// as a file, whose first line is "// " and its options: for other compilers to look at. Throws IoError.
void keep_source(const std::string& source, const std::string& options);

}  // namespace concord::opencl
