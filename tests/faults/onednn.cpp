// Calls of oneDNN that fail, at every place that calls.
#include <oneapi/dnnl/dnnl_types.h>

#include "concord_test.hpp"
#include "faults/series.hpp"
#include "opencl/opencl_test.hpp"

using namespace concord;
using namespace concord::test;

namespace {

using faults::Kind;

const Answer kOutOfMemory{dnnl_out_of_memory, "out_of_memory", ErrorType::memory},
    kUnimplemented{dnnl_unimplemented, "unimplemented", ErrorType::unsupported},
    kRuntimeError{dnnl_runtime_error, "runtime_error", ErrorType::device};

/// Errors of the functions that describe such an operation, whatever this version of oneDNN calls them.
std::size_t described(const Tallies& tallies, const std::string& operation) {
  std::size_t errors = 0;
  for (const auto& [function, one] : tallies) {
    const bool describes = function.ends_with("_desc_init") || function.ends_with("_primitive_desc_create");
    if (describes && function.find(operation) != std::string::npos) errors += one.errors;
  }
  return errors;
}

}  // namespace

TEST_CASE("oneDNN has no primitive or no memory for it", "[faults]") {
  const std::string unfused = "an epilogue that oneDNN does not take is computed by itself",
                    smaller = "a validation that finds no memory goes on in smaller batches";
  FaultSeries series({.device = "cpu",
                      .name = "CPU",
                      .other = "cpu",
                      .rules = {{Kind::description, "", {kUnimplemented, kOutOfMemory}},
                                {Kind::description, "dnnl_primitive_desc_iterator_fetch", {kOutOfMemory}},
                                {Kind::primitive, "", {kUnimplemented, kOutOfMemory}},
                                {Kind::memory, "", {kOutOfMemory}},
                                {Kind::execution, "", {kOutOfMemory, kRuntimeError}}},
                      .exceptions = {{Kind::description, "", {dnnl_unimplemented}, {}, {}, unfused},
                                     {Kind::primitive, "", {dnnl_unimplemented}, {}, {}, unfused},
                                     {Kind::execution, "", {dnnl_out_of_memory}, {"train"}, {}, smaller}},
                      .each_answer = true});
  const std::vector<DevicePtr> others = opencl_devices();
  std::vector<Outcome> on_others;
  for (const DevicePtr& other : others) on_others.push_back(multiply(other->info().id));
  series.run("multiply", multiply);
  series.run("predict", predict);
  series.run("sequences", sequences);
  series.run("trace", trace);
  series.run("replay", replay);
  series.run("train", train);
  series.run("compare", compare_beside);
  for (std::size_t i = 0; i < others.size(); ++i) CHECK(multiply(others[i]->info().id) == on_others[i]);
  WARN(text_of(series.tallies()));
  CHECK(20 * total(series.tallies()).missed <= total(series.tallies()).faults);
  for (const std::string made : {"primitive_create", "primitive_execute", "primitive_desc_query"}) {
    for (const std::string kind : {"convolution", "matmul", "reorder"}) {
      INFO(made << " of " << kind);
      CHECK(total(series.tallies(), "dnnl_" + made + " of " + kind).errors > 0);
    }
  }
  for (const std::string directed :
       {"convolution_forward", "convolution_backward_data", "convolution_backward_weights", "matmul", "reorder"}) {
    INFO(directed);
    CHECK(described(series.tallies(), directed) > 0);
  }
  CHECK(total(series.tallies(), "dnnl_memory_create").sites >= 8);
  CHECK(total(series.tallies(), "dnnl_primitive_attr_create").sites >= 8);
  CHECK(total(series.tallies()).sites >= 150);
}

// What all programs of a process share is made at the first use: in a process of its own.
TEST_CASE("the first engine and stream of oneDNN are not to be had", "[.first]") {
  for (const int status : {dnnl_out_of_memory, dnnl_unimplemented}) {
    const faults::Ordered fault({std::nullopt, Kind::open, 1, status});
    if (status == dnnl_out_of_memory) {
      CHECK_THROWS_AS(multiply("cpu"), OutOfMemory);
    } else {
      CHECK_THROWS_AS(multiply("cpu"), NotSupported);
    }
    CHECK(fault.happened());
  }
  {
    const faults::Ordered fault({std::nullopt, Kind::open, 2, dnnl_out_of_memory});  // the stream, behind the engine
    CHECK_THROWS_AS(multiply("cpu"), OutOfMemory);
    CHECK(fault.happened());
  }
  CHECK_FALSE(multiply("cpu").empty());
}
