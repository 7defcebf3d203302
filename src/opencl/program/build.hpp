// Programs of one device out of source or binary, whole and at once: what the workers of a ProgramCache do.
#pragma once

#include <boost/compute/context.hpp>
#include <boost/compute/device.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "concord/opencl/driver/handle.hpp"

namespace concord::opencl {

/// The names of the kernels in a source, for people.
[[nodiscard]] std::string kernels_in(std::string_view source);

/// What programs are built for. A device that is lost does not tell its name any more.
struct BuildTarget {
  boost::compute::context context;
  boost::compute::device device;
  std::string name;
};

/// Throws DeviceError with the build log when the source does not compile, OutOfMemory when that finds no memory.
[[nodiscard]] ProgramHandle build_source(const BuildTarget& target, const std::string& source,
                                         const std::string& options);

/// Throws DeviceError when the driver does not take the binary, or OutOfMemory.
[[nodiscard]] ProgramHandle build_binary(const BuildTarget& target, std::string_view binary,
                                         const std::string& options);

/// What `build_binary` makes the program of again; empty where the driver does not say.
[[nodiscard]] std::string binary_of(const ProgramHandle& program);

/// How a kernel marks the instructions that only `with_marked_instructions` switches on.
inline constexpr std::string_view kInstructionMark = "//@";

/// PTX with its marked instructions switched on, for the architecture that has them (sm_90a instead of sm_90). NVIDIA's
/// OpenCL front end refuses instructions of inline assembly that its assembler knows well: those of sm_90a. So a kernel
/// writes them as comments of the assembly, which the front end passes through: asm("//@ wgmma.fence.sync.aligned;").
/// Throws DeviceError when the binary is no PTX: the instructions would be left out in silence.
[[nodiscard]] std::string with_marked_instructions(std::string ptx, std::string_view device);

/// How many programs may be built at once: as many as the machine has processors, up to 16, where the platform's
/// compiler is known to be safe in parallel, else 0: one by one in the calling thread. CONCORD_BUILD_THREADS says
/// otherwise; throws ArgumentError when that is no number from 0 to 64.
[[nodiscard]] unsigned build_threads(const boost::compute::device& device);

/// Whether a platform with these words about itself keeps compiled kernels on disk on its own and compiles each kernel
/// once more to hand out a binary. PoCL does: without a binary its first run takes about half the time, and a later one
/// some ten milliseconds more a program.
[[nodiscard]] bool keeps_programs_itself(std::string_view version);

/// Whether a platform with these words about itself compiles programs in parallel without harm.
[[nodiscard]] bool builds_in_parallel(std::string_view vendor, std::string_view version);

}  // namespace concord::opencl
