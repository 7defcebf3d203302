// What a recording shows of operators on an OpenCL device, and the times that a driver tells.
#include "concord/core/timeline.hpp"

#include <algorithm>

#include "driver_traits.hpp"
#include "opencl/opencl_test.hpp"
#include "timeline.hpp"

namespace concord::test {

TEST_CASE("an operator of several kernels shows each of them inside its span", "[opencl]") {
  for (const DevicePtr& device : opencl_devices()) {
    if (!has_times(device)) {
      WARN("skipped: " << device->info().name << " tells no times of kernels");
      continue;
    }
    INFO(device->info().id);
    const TemporaryFolder folder;
    timeline::Recording recording(folder / "trace.json");
    Graph graph;
    const Value image = graph.input("image", {DType::f32, {64, 20, 24, 24}});
    const Value channels = sum(image, {0, 2, 3});
    Program program = compile(graph, std::vector{channels}, std::make_shared<Variables>(device, 1));
    program.write("image", Tensor(DType::f32, image.shape()));
    program.run();
    recording.finish();
    const Tracks tracks = read_trace(folder / "trace.json");
    // Other tests may hold a device of the same name, whose track then has the plain name.
    const auto track = std::ranges::find_if(
        tracks, [&](const auto& one) { return one.first.starts_with(device->info().id + " kernels"); });
    REQUIRE(track != tracks.end());
    const std::vector<TracedSpan>& spans = track->second;
    const auto whole =
        std::ranges::find_if(spans, [](const TracedSpan& span) { return span.detail.starts_with("reduce_sum"); });
    REQUIRE(whole != spans.end());
    constexpr double kRounded = 0.01;  // begin and length are written in thousandths of a microsecond
    const auto parts = std::ranges::count_if(spans, [&](const TracedSpan& span) {
      return span.detail.empty() && span.name.starts_with("reduce_") && span.begin >= whole->begin - kRounded &&
             span.end <= whole->end + kRounded;
    });
    CHECK(parts == 2);
  }
}

// A driver without a clock must not make a launch look faster than any memory can be.
TEST_CASE("the time of a launch is no placeholder", "[opencl]") {
  constexpr double kFastestMemory = 1e14;  // bytes a second
  for (const DevicePtr& device : opencl_devices()) {
    INFO(device->info().id);
    Graph graph;
    const Value x = graph.input("x", {DType::f32, {1 << 22}});
    Program program = compile(graph, std::vector{x + 1.0F}, std::make_shared<Variables>(device, 1));
    program.write("x", Tensor(DType::f32, x.shape()));
    const std::vector<TraceEntry> entries = program.run_traced();
    REQUIRE(entries.size() == 1);
    CHECK(static_cast<double>(entries.front().cost.bytes) / entries.front().seconds < kFastestMemory);
  }
}

}  // namespace concord::test
