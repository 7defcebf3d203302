// Builds programs of one device from source or binary. Used by the workers of a ProgramCache.
#pragma once

#include <boost/compute/context.hpp>
#include <boost/compute/device.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "concord/opencl/driver/handle.hpp"

namespace concord::opencl {

/// The names of the kernels in a source, for messages.
[[nodiscard]] std::string kernels_in(std::string_view source);

/// The device and context that programs are built for. `name` is a copy, because a lost device no longer reports its
/// name.
struct BuildTarget {
  boost::compute::context context;
  boost::compute::device device;
  std::string name;
};

/// Throws DeviceError with the build log when the source does not compile, OutOfMemory when the compiler runs out of
/// memory.
[[nodiscard]] ProgramHandle build_source(const BuildTarget& target, const std::string& source,
                                         const std::string& options);

/// Throws DeviceError when the driver rejects the binary, or OutOfMemory.
[[nodiscard]] ProgramHandle build_binary(const BuildTarget& target, std::string_view binary,
                                         const std::string& options);

/// The binary of a program, for `build_binary`; empty where the driver does not return one.
[[nodiscard]] std::string binary_of(const ProgramHandle& program);

/// The mark of an instruction that only `with_marked_instructions` enables.
inline constexpr std::string_view kInstructionMark = "//@";

/// Enables the marked instructions of PTX and selects the architecture that has them (sm_90a instead of sm_90).
/// NVIDIA's OpenCL front end rejects inline assembly with the instructions of sm_90a, although NVIDIA's assembler
/// supports them. A kernel therefore writes them as assembly comments, which the front end keeps: asm("//@
/// wgmma.fence.sync.aligned;"). Kernels of a program with setmaxnreg also get .minnctapersm 1, without which the
/// assembler ignores it. Throws DeviceError when the binary is not PTX: the instructions would be lost silently.
[[nodiscard]] std::string with_marked_instructions(std::string ptx, std::string_view device);

/// How many programs may be built at once. Where the platform's compiler is known to be thread-safe: the
/// processors that the process may use, at most 16. Elsewhere: 0, the calling thread builds one after the other.
/// CONCORD_BUILD_THREADS overrides this; throws ArgumentError when it is not a number from 0 to 64.
[[nodiscard]] unsigned build_threads(const boost::compute::device& device);

/// Whether the platform with this version text has its own disk cache and recompiles each kernel to return a binary.
/// PoCL does. When the backend stores no binaries, the first run with PoCL takes about half the time, and a later one
/// about ten milliseconds more per program.
[[nodiscard]] bool keeps_programs_itself(std::string_view version);

/// Whether the platform with this vendor and version text compiles programs in parallel safely.
[[nodiscard]] bool builds_in_parallel(std::string_view vendor, std::string_view version);

}  // namespace concord::opencl
