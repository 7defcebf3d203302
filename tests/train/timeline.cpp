// What a recorded training shows: kernels, copies, host phases and data loading, on tracks of their own.
#include "concord/core/timeline.hpp"

#include "collective/rank_threads.hpp"
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

namespace {

/// Of the launches of a training step in a trace: "step", "before exchange" and so on, in their order, each with the
/// gradients that its launches complete. Checks that passes follow each other.
std::vector<std::pair<std::string, std::map<std::string, int>>> parts_of(const std::filesystem::path& file,
                                                                         const std::string& track) {
  const auto document = nlohmann::json::parse(content_of(file));
  const std::vector<std::string> passes{"forward", "gradient", "update"};
  std::vector<std::pair<std::string, std::map<std::string, int>>> parts;
  int number = -1;
  std::ptrdiff_t pass = 0;
  for (const auto& event : document.at("traceEvents")) {
    if (event.at("name") == "thread_name" && event.at("args").at("name") == track) number = event.at("tid");
  }
  for (const auto& event : document.at("traceEvents")) {
    if (event.at("ph") != "X" || event.at("tid") != number || !event.at("args").contains("pass")) continue;
    const auto& arguments = event.at("args");
    if (arguments.contains("begins")) {
      parts.emplace_back(arguments.at("begins"), std::map<std::string, int>{});
      pass = 0;
    }
    const auto next = std::ranges::find(passes, arguments.at("pass").get<std::string>()) - passes.begin();
    CHECK(next >= pass);
    pass = next;
    for (const auto& [key, value] : arguments.items()) {
      if (key.starts_with("gradient ")) parts.back().second[key.substr(9)] = value;
    }
  }
  return parts;
}

const std::map<std::string, int> kGradients{
    {"0.weight", 6 * 16 * 4}, {"0.bias", 16 * 4}, {"3.weight", 16 * 3 * 4}, {"3.bias", 3 * 4}};

}  // namespace

TEST_CASE("a trace says when the gradients of a step are complete", "[train][plan]") {
  const Dataset data = small_data(60);
  for (const DevicePtr& device : devices()) {
    if (!has_times(device)) continue;
    INFO(device->info().id);
    const TemporaryFolder folder;
    timeline::Recording recording(folder / "trace.json");
    Trainer trainer = small_trainer(device);
    trainer.fit(data, {.epochs = 1, .batch = 20});
    recording.finish();
    const auto parts = parts_of(folder / "trace.json", device->info().id + " kernels");
    REQUIRE(parts.size() == 3);
    for (const auto& [name, gradients] : parts) {
      CHECK(name == "step");
      CHECK(gradients == kGradients);
    }
  }
}

TEST_CASE("the trace of a rank has both parts of its steps, and the exchange", "[train][plan]") {
  const Dataset data = small_data(80);
  const std::string id = devices()[0]->info().id;
  const TemporaryFolder folder;
  timeline::Recording recording(folder / "trace.json");
  const auto errors = on_ranks(2, [&](const collective::GroupPtr& group) {
    Trainer trainer = small_trainer(Device::open(id), {.seed = 4, .group = group});
    trainer.fit(data, {.epochs = 1, .batch = 20});
  });
  recording.finish();
  CHECK(errors == std::vector<std::string>(2));
  const Tracks tracks = read_trace(folder / "trace.json");
  REQUIRE(tracks.contains("exchange"));
  CHECK(tracks.at("exchange").size() == 2);  // one bucket a step
  CHECK(tracks.at("exchange")[0].name == "sum over ranks");
  if (!has_times(devices()[0])) return;
  // Each rank has a device, and so has the test.
  std::size_t ranks = 0;
  for (const auto& [track, spans] : tracks) ranks += track.starts_with(id + " kernels") ? 1 : 0;
  CHECK(ranks == 2);
  const auto parts = parts_of(folder / "trace.json", std::ranges::find_if(tracks, [&](const auto& track) {
                                                       return track.first.starts_with(id + " kernels");
                                                     })->first);
  REQUIRE(parts.size() == 4);
  for (const std::size_t step : {0, 2}) {
    CHECK(parts[step] == std::pair{std::string("before exchange"), kGradients});
    CHECK(parts[step + 1] == std::pair{std::string("after exchange"), std::map<std::string, int>{}});
  }
}
