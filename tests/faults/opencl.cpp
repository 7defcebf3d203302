// Calls of OpenCL that fail: at every place that calls, once, or all from there on, as when a device is lost.
#include <array>

#include "concord/opencl/device.hpp"
#include "concord/opencl/launch/constant_table.hpp"
#include "concord_test.hpp"
#include "faults/series.hpp"
#include "opencl/opencl_test.hpp"

using namespace concord;
using namespace concord::test;

namespace {

using faults::Kind;

const Answer kAllocationFailure{-4, "CL_MEM_OBJECT_ALLOCATION_FAILURE", ErrorType::memory},
    kOutOfHostMemory{-6, "CL_OUT_OF_HOST_MEMORY", ErrorType::memory},
    kNoResources{-5, "CL_OUT_OF_RESOURCES", ErrorType::memory},  // where memory is allocated
    kOutOfResources{-5, "CL_OUT_OF_RESOURCES", ErrorType::device},
    kNotAvailable{-2, "CL_DEVICE_NOT_AVAILABLE", ErrorType::device},
    kBuildFailure{-11, "CL_BUILD_PROGRAM_FAILURE", ErrorType::device},
    kInvalidDevice{-33, "CL_INVALID_DEVICE", ErrorType::device},
    kWaitListError{-14, "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST", ErrorType::device};

struct Named {
  std::string name;
  Workload session;
};

/// The cheapest first: a place is tried in the first session that comes by it. Tuning last, which goes on after most.
const std::vector<Named> kSessions{
    {"open", test::open},        {"predict", predict}, {"multiply", multiply}, {"build_anew", build_anew},
    {"sequences", sequences},    {"trace", trace},     {"replay", replay},     {"train", train},
    {"compare", compare_beside}, {"tune", tune}};

/// What a session may go on after, with the bits of one without the fault.
std::vector<Exception> exceptions() {
  const std::string released = "a destructor goes on to release", smaller = "a validation goes on in smaller batches",
                    others = "the other kernels are measured", from_source = "a program is built from its source",
                    untimed = "what has no time is not on the timeline", host = "the host's clock is taken",
                    unkept = "a program is not kept", whole = "a device is no part of another",
                    silent = "a compiler says nothing", plain = "plain OpenCL C serves any device",
                    unplaced = "a device without a PCI address has no energy";
  const std::vector<std::string> cached{"multiply", "tune",  "predict", "sequences",
                                        "trace",    "train", "replay",  "compare"};
  return {{Kind::allocation, "clEnqueueUnmapMemObject", {}, {}, "~", released},
          {Kind::wait, "clFinish", {}, {}, "~", released},
          {Kind::allocation, "", {}, {"train"}, "", smaller},
          {Kind::enqueue, "", {kAllocationFailure.status}, {"train"}, "", smaller},
          {Kind::copy, "", {kOutOfHostMemory.status}, {"train"}, "", smaller},
          {Kind::build, "", {}, {"tune"}, "", others},
          {Kind::allocation, "clCreateBuffer", {}, {"tune"}, "", others},
          {Kind::argument, "", {}, {"tune"}, "", others},
          {Kind::enqueue, "", {}, {"tune"}, "", others},
          {Kind::copy, "", {}, {"tune"}, "", others},
          {Kind::wait, "clFinish", {}, {"tune"}, "Context::timed", others},
          {Kind::wait, "clWaitForEvents", {}, {"tune"}, "TransferRing", others},
          {Kind::build, "clCreateProgramWithBinary", {}, cached, "", from_source},
          {Kind::build, "clBuildProgram", {}, cached, "", from_source},
          {Kind::wait, "clFinish", {}, {"trace"}, "Logs", untimed},
          {Kind::wait, "clWaitForEvents", {}, {"trace"}, "EventLog", untimed},
          {Kind::enqueue, "clEnqueueMarkerWithWaitList", {}, {"trace"}, "EventLog", untimed},
          {Kind::query, "clGetEventInfo", {}, {"trace"}, "", untimed},
          {Kind::query, "clGetEventProfilingInfo", {}, {"trace"}, "", untimed},
          {Kind::query, "", {}, {"tune"}, "clblast", others},
          {Kind::query, "clGetKernelWorkGroupInfo", {}, {"tune"}, "", others},
          {Kind::query, "clGetEventProfilingInfo", {}, {"tune"}, "", host},
          {Kind::query, "clGetProgramInfo", {}, {"build_anew"}, "", unkept},
          {Kind::query, "clGetProgramBuildInfo", {}, {"build_anew"}, "", silent},
          {Kind::query, "clGetDeviceInfo of 0x1042", {}, {}, "", whole},  // CL_DEVICE_PARENT_DEVICE, for Boost.Compute
          {Kind::query, "clGetDeviceInfo of 0x400", {}, {}, "", plain},  // CL_DEVICE_COMPUTE_CAPABILITY_…_NV and others
          {Kind::query, "clGetDeviceInfo of 0x410F", {}, {}, "", unplaced}};  // CL_DEVICE_PCI_BUS_INFO_KHR
}

/// How many places of which functions there are at least.
using Least = std::map<std::string, std::size_t>;

const Least kCalls{{"clCreateContext", 1},
                   {"clCreateCommandQueue", 2},
                   {"clCreateBuffer", 12},
                   {"clEnqueueMapBuffer", 2},
                   {"clEnqueueUnmapMemObject", 3},
                   {"clCreateProgramWithSource", 1},
                   {"clCreateProgramWithBinary", 1},
                   {"clBuildProgram", 2},
                   {"clCreateKernel", 5},
                   {"clSetKernelArg", 30},
                   {"clEnqueueNDRangeKernel", 10},
                   {"clEnqueueFillBuffer", 1},
                   {"clEnqueueReadBuffer", 2},
                   {"clEnqueueWriteBuffer", 10},
                   {"clEnqueueCopyBuffer", 4},
                   {"clEnqueueMarkerWithWaitList", 2},
                   {"clEnqueueBarrierWithWaitList", 2},
                   {"clFinish", 20},
                   {"clFlush", 8},
                   {"clWaitForEvents", 5},
                   {"", 150}};
const Least kQuestions{{"clGetPlatformIDs", 2},      {"clGetPlatformInfo", 5},        {"clGetDeviceIDs", 2},
                       {"clGetDeviceInfo", 100},     {"clGetKernelWorkGroupInfo", 1}, {"clGetProgramInfo", 2},
                       {"clGetProgramBuildInfo", 1}, {"clGetEventInfo", 1},           {"clGetEventProfilingInfo", 3}};

void check_all(const std::vector<Rule>& rules, const Least& least, bool lasts = false, bool each_answer = false) {
  // From the driver's own cache a session would take ten times as long, and no program comes as a binary.
  const Setting our_cache("CONCORD_DRIVER_CACHE", "0");
  for (const DevicePtr& device : opencl_devices()) {
    const faults::OnlyDevice only(dynamic_cast<opencl::OpenClDevice&>(*device).context().device().id());
    FaultSeries series({.device = "opencl:0",
                        .name = device->info().name,
                        .other = "cpu",
                        .rules = rules,
                        .exceptions = exceptions(),
                        .lasts = lasts,
                        .each_answer = each_answer});
    for (const Named& one : kSessions) series.run(one.name, one.session);
    WARN(device->info().name << "\n" << text_of(series.tallies()));
    CHECK(20 * total(series.tallies()).missed <= total(series.tallies()).faults);
    for (const auto& [function, sites] : least) {
      INFO(function);
      CHECK(total(series.tallies(), function).sites >= sites);
    }
  }
}

std::vector<Rule> call_rules() {
  return {{Kind::open, "", {kOutOfHostMemory, kNotAvailable}},
          {Kind::allocation, "", {kAllocationFailure, kNoResources, kOutOfHostMemory}},
          {Kind::build, "", {kBuildFailure, kOutOfHostMemory}},
          {Kind::argument, "", {kOutOfResources}},
          {Kind::enqueue, "", {kOutOfResources, kAllocationFailure}},
          {Kind::copy, "", {kOutOfResources, kOutOfHostMemory}},
          {Kind::wait, "", {kOutOfResources, kWaitListError}}};
}

std::vector<Rule> question_rules() {
  return {{Kind::query, "", {kOutOfResources, kInvalidDevice}},
          {Kind::query, "clGetEventInfo", {kOutOfResources, kInvalidDevice}, true}};
}

}  // namespace

// What launches are bound with is made outside of `Device::prepare`, too, as when a product's ways are measured.
TEST_CASE("a kernel's table finds no memory", "[faults]") {
  const std::array<std::int32_t, 3> entries{1, 2, 3};
  for (const DevicePtr& device : opencl_devices()) {
    opencl::Context& context = dynamic_cast<opencl::OpenClDevice&>(*device).context();
    const faults::Held before = faults::held();
    const auto refusing = [](const Answer& answer) { return faults::Fault{{}, Kind::allocation, 1, answer.status}; };
    {
      const faults::Ordered fault(refusing(kAllocationFailure));
      CHECK_THROWS_AS(opencl::constant_table<std::int32_t>(context, entries), OutOfMemory);
    }
    {
      const faults::Ordered fault(refusing(kNotAvailable));
      CHECK_THROWS_WITH(opencl::constant_table<std::int32_t>(context, entries),
                        contains(kNotAvailable.name) && contains(device->info().name));
    }
    static_cast<void>(opencl::constant_table<std::int32_t>(context, entries));
    CHECK(faults::held() == before);
  }
}

TEST_CASE("each call of OpenCL fails, first and last from every place", "[faults]") { check_all(call_rules(), kCalls); }

TEST_CASE("OpenCL does not answer a question, from every place that asks", "[faults]") {
  check_all(question_rules(), kQuestions);
}

TEST_CASE("each call and question of OpenCL fails in every way", "[faults][.slow]") {
  check_all(call_rules(), kCalls, false, true);
  check_all(question_rules(), kQuestions, false, true);
}

TEST_CASE("a device is lost at every place that calls it", "[faults]") {
  std::vector<Rule> rules;
  for (const Kind kind :
       {Kind::open, Kind::allocation, Kind::build, Kind::argument, Kind::enqueue, Kind::copy, Kind::wait}) {
    rules.push_back({kind, "", {kNotAvailable}});
  }
  check_all(rules, kCalls, true);
}
