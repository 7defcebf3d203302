// Cases of a program's training: saved by compare, replayed by the program itself.
#include <nlohmann/json.hpp>

#include "cli/process.hpp"
#include "driver_traits.hpp"
#include "timeline.hpp"

namespace concord::test {
namespace {

/// A program that trains: the command itself.
Arguments training(const std::string& data) {
  return {"train", "mlp", "--data", data, "--device", cheap_device(), "--batch", "5", "--seed", "7"};
}

Arguments saving(const std::string& program, const Arguments& own, const std::string& file) {
  const std::string twice = cheap_device() + "," + cheap_device();
  Arguments arguments{"compare", program, "--devices", twice, "--steps", "1", "--seconds", "0.001"};
  arguments.insert(arguments.end(), {"--save-case", file, "--case", "grad/3/matmul/matmul", "--"});
  arguments.insert(arguments.end(), own.begin(), own.end());
  return arguments;
}

}  // namespace

TEST_CASE("a case of a program's training is replayed by the program on each device", "[cli]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string file = (folder / "case.safetensors").string();
  const Ended saved = run_command(saving(command_path(), training(write_digits(folder / "data", 40, 10)), file));
  INFO(saved.err);
  REQUIRE(saved.code == 0);
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    const Ended replayed = run_command({"replay", file, "--start", "--device", device->info().id, "--json"});
    INFO(replayed.err);
    REQUIRE(replayed.code == 0);
    const auto report = nlohmann::json::parse(replayed.out);
    CHECK(report.at("node") == "grad/3/matmul/matmul");
    CHECK(report.at("device") == device->info().id);
    CHECK(report.at("network").at("program") == command_path());
    CHECK(report.at("diverges") == false);
    REQUIRE(report.at("values").size() == 1);
  }
  const Ended text = run_command({"replay", file, "--start", "--device", cheap_device()});
  CHECK(text.code == 0);
  CHECK_THAT(text.out,
             test::contains("grad/3/matmul/matmul of " + command_path() + ": ") && test::contains("tolerance"));
  const Ended unasked = run_command({"replay", file, "--device", cheap_device()});
  CHECK(unasked.code == 2);
  CHECK_THAT(unasked.err, test::contains("from a training of the program " + command_path() + " \"train\" \"mlp\"") &&
                              test::contains("--start starts it with these arguments"));
}

TEST_CASE("a program that is compared, or replays a case, writes a timeline of that", "[cli]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string file = (folder / "case.safetensors").string(), trace = (folder / "trace.json").string();
  const Arguments own = training(write_digits(folder / "data", 40, 10));
  Arguments comparing = saving(command_path(), own, file);
  comparing.insert(std::ranges::find(comparing, "--"), {"--trace", trace});
  const Ended compared = run_command(comparing);
  INFO(compared.err);
  REQUIRE(compared.code == 0);
  CHECK(has_span(read_trace(trace), "host", "enqueue step"));
  std::filesystem::remove(trace);
  const Ended replayed = run_command({"replay", file, "--start", "--device", cheap_device(), "--trace", trace});
  INFO(replayed.err);
  REQUIRE(replayed.code == 0);
  const Tracks tracks = read_trace(trace);
  // The first is that of the program's own device.
  if (has_times(cheap_device())) CHECK(tracks.contains(cheap_device() + " kernels 2"));
  CHECK(has_span(tracks, "host", "compile"));
  const std::string nowhere = (folder / "no" / "trace.json").string();
  for (Arguments arguments : {comparing, Arguments{"replay", file, "--start", "--trace", trace}}) {
    *std::ranges::find(arguments, trace) = nowhere;
    const Ended refused = run_command(arguments);
    CHECK(refused.code == 1);
    CHECK_THAT(refused.err, test::contains(nowhere));
  }
}

TEST_CASE("a node that no training of the program has is wrong use", "[cli]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  Arguments arguments =
      saving(command_path(), training(write_digits(folder / "data", 40, 10)), (folder / "case.safetensors").string());
  *std::ranges::find(arguments, "grad/3/matmul/matmul") = "no/such";
  const Ended ended = run_command(arguments);
  CHECK(ended.code == 2);
  CHECK_THAT(ended.err, test::contains("no checked operator is named 'no/such'; there are 1/"));
}

TEST_CASE("a case whose program is gone, or trains no more, is refused", "[cli]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string file = (folder / "case.safetensors").string(), program = (folder / "program").string();
  std::filesystem::create_symlink(command_path(), program);
  REQUIRE(run_command(saving(program, training(write_digits(folder / "data", 40, 10)), file)).code == 0);
  const auto refusal = [&] {
    const Ended ended = run_command({"replay", file, "--start", "--device", cheap_device()});
    CHECK(ended.code == 1);
    return ended.err;
  };
  std::filesystem::remove(program);
  CHECK_THAT(refusal(), test::contains(program + " does not start: No such file"));
  std::filesystem::create_symlink("/bin/true", program);
  CHECK_THAT(refusal(), test::contains(program + " replayed nothing. The command compares a training by Trainer::fit"));
}

}  // namespace concord::test
