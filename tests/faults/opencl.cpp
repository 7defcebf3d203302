// Calls of OpenCL that a training makes fail: once, or all from some call on, as when a device is lost.
#include <array>

#include "concord/opencl/constant_table.hpp"
#include "concord/opencl/device.hpp"
#include "concord_test.hpp"
#include "faults/series.hpp"
#include "opencl/opencl_test.hpp"

using namespace concord;
using namespace concord::test;

namespace {

const Answer kAllocationFailure{-4, "CL_MEM_OBJECT_ALLOCATION_FAILURE", ErrorType::memory},
    kOutOfHostMemory{-6, "CL_OUT_OF_HOST_MEMORY", ErrorType::memory},
    kNoResources{-5, "CL_OUT_OF_RESOURCES", ErrorType::memory},  // where memory is allocated
    kOutOfResources{-5, "CL_OUT_OF_RESOURCES", ErrorType::device},
    kNotAvailable{-2, "CL_DEVICE_NOT_AVAILABLE", ErrorType::device},
    kBuildFailure{-11, "CL_BUILD_PROGRAM_FAILURE", ErrorType::device},
    kWaitListError{-14, "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST", ErrorType::device};

void check_all(std::optional<faults::Kind> kind, const std::vector<Answer>& answers, std::size_t most = 8) {
  bool is_there = false;
  for (const DevicePtr& device : devices()) {
    if (device->info().backend != "opencl") continue;
    is_there = true;
    const Series series{device->info().id, device->info().name, kind, answers};
    for (const Session session : {train, trace, replay, compare_beside, multiply})
      CHECK(check_series(session, series, most) > 0);
    check_series(tune, series, most);  // which goes on with the other kernels
  }
  if (!is_there) WARN("skipped: no OpenCL device");
}

}  // namespace

TEST_CASE("a context or queue that is not to be had", "[faults]") {
  check_all(faults::Kind::open, {kOutOfHostMemory, kNotAvailable});
}

TEST_CASE("an allocation fails", "[faults]") {
  check_all(faults::Kind::allocation, {kAllocationFailure, kNoResources, kOutOfHostMemory});
}

// What launches are bound with is made outside of `Device::prepare`, too, as when a product's ways are measured.
TEST_CASE("a kernel's table finds no memory", "[faults]") {
  const std::array<std::int32_t, 3> entries{1, 2, 3};
  for (const DevicePtr& device : opencl_devices()) {
    opencl::Context& context = dynamic_cast<opencl::OpenClDevice&>(*device).context();
    const faults::Held before = faults::held();
    {
      const faults::Ordered fault({faults::Kind::allocation, 1, kAllocationFailure.status});
      CHECK_THROWS_AS(opencl::constant_table<std::int32_t>(context, entries), OutOfMemory);
    }
    {
      const faults::Ordered fault({faults::Kind::allocation, 1, kNotAvailable.status});
      CHECK_THROWS_WITH(opencl::constant_table<std::int32_t>(context, entries),
                        contains(kNotAvailable.name) && contains(device->info().name));
    }
    static_cast<void>(opencl::constant_table<std::int32_t>(context, entries));
    CHECK(faults::held() == before);
  }
}

TEST_CASE("a program or kernel is not built", "[faults]") {
  check_all(faults::Kind::build, {kBuildFailure, kOutOfHostMemory});
}

TEST_CASE("an argument is refused", "[faults]") { check_all(faults::Kind::argument, {kOutOfResources}); }

TEST_CASE("a command is not enqueued", "[faults]") {
  check_all(faults::Kind::enqueue, {kOutOfResources, kAllocationFailure});
}

TEST_CASE("a copy is not enqueued", "[faults]") { check_all(faults::Kind::copy, {kOutOfResources, kOutOfHostMemory}); }

TEST_CASE("waiting fails", "[faults]") { check_all(faults::Kind::wait, {kOutOfResources, kWaitListError}); }

TEST_CASE("a device is lost", "[faults]") { check_all(std::nullopt, {kNotAvailable}, 16); }

TEST_CASE("many calls of a training fail, one after another", "[faults][.slow]") {
  using faults::Kind;
  constexpr std::size_t kMany = 64;
  for (const Kind kind : {Kind::open, Kind::allocation, Kind::build, Kind::argument, Kind::enqueue, Kind::copy}) {
    check_all(kind, {kind == Kind::allocation ? kNoResources : kOutOfResources}, kMany);
  }
  check_all(std::nullopt, {kNotAvailable}, kMany);
}
