// Faults on order: a library of its own, first in the test program's list, defines the functions of OpenCL
// (opencl_calls.cpp, opencl_queries.cpp) and of oneDNN (onednn_calls.cpp, onednn_descriptions.cpp,
// onednn_operations.cpp) that can fail. Concord calls these, and they call the driver's, unless a fault is ordered. So
// the product knows nothing of its tests. Handles are counted on the way.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace concord::faults {

/// What a call does.
enum class Kind : std::uint8_t {
  open,         // contexts and queues
  allocation,   // buffers, parts of buffers, mapped memory and its end
  build,        // programs and kernels
  argument,     // of kernels
  enqueue,      // kernels, fills, markers, barriers
  copy,         // reads, writes and copies of buffers
  wait,         // finish, flush, events
  query,        // what a platform, device, program, kernel or event says of itself
  description,  // oneDNN's descriptors, attributes and what they say
  primitive,    // oneDNN's primitives
  memory,       // oneDNN's memory objects
  execution,    // of oneDNN's primitives
};
inline constexpr std::size_t kKinds = 12;

/// A place that calls: who calls, and two callers of it, as they lie in their libraries.
using Site = std::uint64_t;

struct SiteCalls {
  Kind kind{};
  std::string function;  // that is called, "dnnl_primitive_create of matmul" where it makes several kinds of things
  const void* from = nullptr;  // an address in the caller
  std::uint64_t calls = 0;
};

/// The N-th call from a site, or of a kind where none is given.
struct Fault {
  std::optional<Site> site;
  Kind kind{};
  std::uint64_t nth = 1;  // from when it is ordered, counted from 1
  int status = 0;         // what the call says, as its library does
  bool lasting = false;   // this call and every later one of any kind
};

/// A fault for as long as this lives; one at a time.
class Ordered {
 public:
  explicit Ordered(const Fault& fault);
  ~Ordered();
  Ordered(const Ordered&) = delete;
  Ordered& operator=(const Ordered&) = delete;
  [[nodiscard]] bool happened() const;
};

/// Calls since the counters were last set to zero, by an order or by `reset_calls`.
[[nodiscard]] std::map<Site, SiteCalls> calls();
void reset_calls();

/// The name of what lies at or before the address: "concord::opencl::Context::timed + 0x1c3".
[[nodiscard]] std::string name_at(const void* address);

/// While this lives OpenCL lists no device but this one, a cl_device_id: what a call at a place fails for is then its
/// own. One at a time.
class OnlyDevice {
 public:
  explicit OnlyDevice(void* device);
  ~OnlyDevice();
  OnlyDevice(const OnlyDevice&) = delete;
  OnlyDevice& operator=(const OnlyDevice&) = delete;
};

enum class Object : std::uint8_t {
  context,
  queue,
  memory,
  program,
  kernel,
  event,
  description,
  attribute,
  primitive,
  host_memory
};
inline constexpr std::size_t kObjects = 10;

/// References held at the moment: made or retained, and not released.
using Held = std::array<std::int64_t, kObjects>;
[[nodiscard]] Held held();

// For the functions that stand in for the libraries'.

/// Counts a call; the status to return instead of making it, where a fault is due. `of` tells kinds of things apart
/// that one function makes.
[[nodiscard]] std::optional<int> refused(Kind kind, std::string_view function, std::string_view of = {});
void count(Object object, int change);

}  // namespace concord::faults
