// What a recorded training shows: kernels, copies, host phases and data loading, on tracks of their own.
#include "concord/core/timeline.hpp"

#include "driver_traits.hpp"
#include "small_training.hpp"
#include "timeline.hpp"

using namespace concord;
using namespace concord::test;

TEST_CASE("a recorded training has its kernels, copies, phases and loaders", "[train]") {
  const Dataset data = small_data(200), other = small_data(60, 1);
  for (const DevicePtr& device : devices()) {
    const double resident = GENERATE(0.4, 0.0);
    const std::string& id = device->info().id;
    INFO(id << ", resident " << resident);
    const TemporaryFolder folder;
    timeline::Recording recording(folder / "trace.json");
    Trainer trainer = small_trainer(device, {.seed = 4, .resident_fraction = resident});
    trainer.fit(data, {.epochs = 2, .batch = 20, .validate = other});
    recording.finish();
    const Tracks tracks = read_trace(folder / "trace.json");
    for (const char* phase :
         {"compile", "prepare kernels", "enqueue step", "epoch", "validation", "wait for the loss"}) {
      INFO(phase);
      CHECK(has_span(tracks, "host", phase));
    }
    // Each of the 20 steps enqueues each of its kernels; validation comes on top.
    const auto count = [&](const std::string& track, const std::string& name) {
      return std::ranges::count(tracks.at(track), name, &TracedSpan::name);
    };
    CHECK(count("host", "enqueue step") == 20 + 2);
    CHECK(has_span(tracks, "loader", "read samples") == (resident == 0));
    if (!has_times(device)) continue;
    REQUIRE(tracks.contains(id + " kernels"));
    const TracedSpan& kernel = tracks.at(id + " kernels").front();
    CHECK_FALSE(kernel.detail.empty());
    CHECK(count(id + " kernels", "0/add") + count(id + " kernels", "1/relu") >= 20);
    CHECK(has_span(tracks, id + " copies", "upload"));
    CHECK(has_span(tracks, id + " copies", "download"));
    if (device->info().backend == "opencl") {
      CHECK(has_span(tracks, id + " transfer queue", "upload") == (resident == 0));
    }
    // By whatever clock: the device's work lies within the training.
    constexpr double kApart = 1e4;  // microseconds that two clocks may differ
    const auto first = std::ranges::min_element(tracks.at("host"), {}, &TracedSpan::begin);
    const auto last = std::ranges::max_element(tracks.at("host"), {}, &TracedSpan::end);
    for (const TracedSpan& span : tracks.at(id + " kernels")) {
      CHECK(span.begin >= first->begin);
      CHECK(span.end <= last->end + kApart);
    }
  }
}
