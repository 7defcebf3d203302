// Faults on order: the test program defines the functions of OpenCL and of oneDNN that can fail (opencl_calls.cpp,
// onednn_calls.cpp). The library calls these, and they call the driver's, unless a fault is ordered. So the product
// knows nothing of its tests. Handles are counted on the way.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace concord::faults {

/// What a call does; a fault is that of the N-th call of its kind.
enum class Kind : std::uint8_t {
  open,        // contexts and queues
  allocation,  // buffers, parts of buffers, mapped memory
  build,       // programs and kernels
  argument,    // of kernels
  enqueue,     // kernels, fills, markers, barriers
  copy,        // reads, writes and copies of buffers
  wait,        // finish, flush, events
  primitive,   // oneDNN's descriptors and primitives
  memory,      // oneDNN's memory objects
  execution,   // of oneDNN's primitives
};
inline constexpr std::size_t kKinds = 10;

struct Fault {
  std::optional<Kind> kind;  // none: a call of any kind counts
  std::uint64_t nth = 1;     // from when it is ordered, counted from 1
  int status = 0;            // what the call says, as its library does
  bool lasting = false;      // this call and every later one of any kind
};

/// A fault for as long as this lives; one at a time.
class Ordered {
 public:
  explicit Ordered(const Fault& fault);
  ~Ordered();
  Ordered(const Ordered&) = delete;
  Ordered& operator=(const Ordered&) = delete;
  /// Whether it has happened, and the function it happened in.
  [[nodiscard]] bool happened() const;
  [[nodiscard]] std::string_view function() const;
};

/// Calls since the counter was last set to zero, by an order or by `reset_calls`.
[[nodiscard]] std::uint64_t calls(Kind kind);
void reset_calls();

enum class Object : std::uint8_t {
  context,
  queue,
  memory,
  program,
  kernel,
  event,
  description,
  primitive,
  host_memory
};
inline constexpr std::size_t kObjects = 9;

/// References held at the moment: made or retained, and not released.
using Held = std::array<std::int64_t, kObjects>;
[[nodiscard]] Held held();

// For the functions that stand in for the libraries'.

/// Counts a call; the status to return instead of making it, where a fault is due.
[[nodiscard]] std::optional<int> refused(Kind kind, std::string_view function);
void count(Object object, int change);

}  // namespace concord::faults
