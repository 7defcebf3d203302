// What a recording shows of operators on an OpenCL device.
#include "concord/core/timeline.hpp"

#include "opencl/opencl_test.hpp"
#include "ops/op_test.hpp"
#include "timeline.hpp"

namespace concord::test {

TEST_CASE("an operator of several kernels shows each of them inside its span", "[opencl]") {
  for (const DevicePtr& device : opencl_devices()) {
    INFO(device->info().id);
    const TemporaryFolder folder;
    timeline::Recording recording(folder / "trace.json");
    static_cast<void>(run(device, {{integers({64, 20, 24, 24}, 1)}}, [](const std::vector<Value>& x) {
      return std::vector{sum(x[0], {0, 2, 3})};
    }));
    recording.finish();
    const Tracks tracks = read_trace(folder / "trace.json");
    const std::string track = device->info().id + " kernels";
    REQUIRE(tracks.contains(track));
    const std::vector<TracedSpan>& spans = tracks.at(track);
    const auto whole = std::ranges::find_if(spans, [](const TracedSpan& span) { return !span.detail.empty(); });
    REQUIRE(whole != spans.end());
    for (const char* kernel : {"reduce_rows", "reduce_columns"}) {
      INFO(kernel);
      const auto part = std::ranges::find(spans, kernel, &TracedSpan::name);
      REQUIRE(part != spans.end());
      CHECK(part->begin >= whole->begin);
      CHECK(part->end <= whole->end);
    }
  }
}

}  // namespace concord::test
