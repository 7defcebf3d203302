// The command `concord`: help, wrong usage (exit code 2), failures (exit code 1 and a sentence that names the cause),
// the devices of a machine without a driver, and what it prints for other programs.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/process.hpp"

using namespace concord;
using namespace concord::test;

namespace {

const std::vector<std::string> kSubcommands{"devices", "train",   "evaluate", "predict", "compare",  "bench",
                                            "models",  "summary", "doctor",   "profile", "tune",     "replay",
                                            "run",     "check",   "convert",  "export",  "crossval", "data"};

}  // namespace

TEST_CASE("the command explains itself", "[cli]") {
  if (!command_is_there()) return;
  const Ended help = run_command({"--help"});
  CHECK(help.code == 0);
  CHECK(help.err.empty());
  for (const std::string& subcommand : kSubcommands) {
    INFO(subcommand);
    CHECK_THAT(help.out, test::contains("\n  " + subcommand + " "));
    const Ended own = run_command({subcommand, "--help"});
    CHECK(own.code == 0);
    CHECK_THAT(own.out, test::contains("--help"));
  }
  const Ended version = run_command({"--version"});
  CHECK(version.code == 0);
  CHECK(version.out == std::string(kVersion) + "\n");
}

TEST_CASE("wrong usage ends with 2 and says what is wrong", "[cli]") {
  if (!command_is_there()) return;
  const Arguments train{"train", "mlp", "--data", "random", "--device", cheap_device(), "--max-steps", "1"};
  const Arguments bench{"bench", "mlp", "--device", cheap_device()};
  check_refusal({}, 2, {"subcommand is required"});
  check_refusal({"trane"}, 2, {"subcommand is required, not 'trane': devices, doctor, train,"});
  check_refusal({"--nonsense"}, 2, {"subcommand is required, not '--nonsense'"});
  check_refusal({"train"}, 2, {"model is required", "`concord train --help`"});
  CHECK_THAT(run_command({"train"}).err, !test::contains("--optimizer"));
  check_refusal({"train", "mlp"}, 2, {"--data is required"});
  check_refusal({"train", "perceptron", "--data", "random"}, 2, {"no network 'perceptron'", "mlp, lenet"});
  check_refusal({"train", "LeNet", "--data", "random"}, 2, {"no network 'LeNet'; did you mean lenet?"});
  check_refusal({"bench", command_path()}, 2, {"is a file and no network", "--weights"});
  for (const Arguments& more :
       {Arguments{"--shares", "3,1"}, Arguments{"--gradients", "bf16"}, Arguments{"--sync-batch-norm"}}) {
    check_refusal(with(train, more), 2, {"are for several devices; name them with --devices"});
  }
  check_refusal({"convert", "a.safetensors", "b.pth"}, 2, {"b.pth", "must end with .safetensors"});
  check_refusal({"export", "lenet", "--out", "lenet.txt"}, 2, {"lenet.txt", "must end with .onnx"});
  check_refusal({"train", "mlp", "--data", "mnits"}, 2, {"unknown data set 'mnits'", "fashion-mnist"});
  check_refusal(with(train, {"--nonsense"}), 2, {"--nonsense"});
  check_refusal(with(train, {"--batch", "0"}), 2, {"--batch: 0 is not an integer from 1 to"});
  check_refusal(with(train, {"--optimizer", "sdg"}), 2,
                {"--optimizer: 'sdg' is none of sgd, adam", "Did you mean sgd?"});
  check_refusal(with(train, {"--optimizer", "adam", "--momentum", "0.5"}), 2, {"--momentum: adam has no such option"});
  check_refusal(with(train, {"--schedule", "lineal"}), 2,
                {"--schedule: there is no schedule 'lineal'; did you mean linear?"});
  check_refusal(with(train, {"--resume", "/nonexistent/run.safetensors"}), 1,
                {"/nonexistent/run.safetensors", "no such file"});
  check_refusal(with(train, {"--out", "net", "--checkpoint", "./net"}), 2, {"--out and --checkpoint would both write"});
  check_refusal(with(train, {"--out", "-"}), 2, {"'-' is not a file here"});
  check_refusal(with(train, {"--freeze", "nosuch"}), 2, {"--freeze nosuch matches no parameter", "there are 1.weight"});
  check_refusal({"evaluate", "mlp", "--data", "random"}, 2, {"evaluate needs weights", "--weights FILE"});
  check_refusal({"compare", "mlp"}, 2, {"--devices is required"});
  check_refusal(with(bench, {"--batch", "0"}), 2, {"--batch: 0 is not an integer from 1 to"});
  check_refusal(with(bench, {"--precision", "fp64"}), 2, {"--precision: 'fp64' is none of fp32, tf32, bf16, fp16"});
  for (const char* bytes : {"", "two", "12 parsecs", "0", "-1MiB", "0.1", "nanGiB", "1e30", "2GB"}) {
    for (const Arguments& command : {train, bench, Arguments{"profile", "mlp"}}) {
      check_refusal(with(command, {"--memory-budget", bytes}), 2, {"--memory-budget", "800MiB or 1.5GiB"});
    }
  }
  check_refusal({"profile", "mlp", "--inference", "--memory-budget", "1GiB", "--device", cheap_device()}, 2,
                {"--memory-budget applies to a training step"});
}

TEST_CASE("a failure ends with 1 and a sentence that names its cause", "[cli]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string data = write_digits(folder / "data", 20, 10), device = cheap_device();
  const Arguments train{"train", "mlp", "--data", data, "--batch", "10", "--max-steps", "1", "--quiet", "--device"};
  const std::string missing = (folder / "missing").string();
  check_refusal(with(train, {device, "--out", ""}), 2, {"--out", "empty"});
  check_refusal(with(train, {"opencl:no-such-card"}), 1, {"opencl:no-such-card", "Devices of this machine"});
  check_refusal({"train", "mlp", "--data", "mnist:" + missing, "--device", device}, 1,
                {"mnist not found", "train-images-idx3-ubyte", missing, "CONCORD_DATA_DIR"});
  for (const char* option : {"--out", "--checkpoint", "--log"}) {
    check_refusal(with(train, {device, option, missing + "/file"}), 1, {missing + "/file", "there is no folder"});
  }
  for (const char* option : {"--out", "--checkpoint"}) {
    const std::string place = folder.path().string();  // told before the training, not after
    check_refusal(with(train, {device, option, place}), 1,
                  {"concord: " + place + " cannot be written", "regular file"});
  }
  for (const char* kind : {"mnist:", "folder:"}) {  // before it is seen that there is no data
    const std::string place = folder.path().string();
    check_refusal({"train", "mlp", "--data", kind + missing, "--log", place, "--device", device}, 1,
                  {"concord: " + place + " cannot be written", "it is a folder"});
  }
  const std::string other = (folder / "other").string(), content = "these are no weights";
  write_file(other, content);
  check_refusal(with(train, {device, "--resume", other}), 1,
                {other + ", byte 0: header length", "not a safetensors file"});
  check_refusal({"evaluate", "mlp", "--data", data, "--device", device, "--weights", other}, 1, {other + ", byte 0"});
  CHECK(content_of(other) == content);

  const auto images = folder / "data" / "train-images-idx3-ubyte";
  write_file(images, content_of(images).substr(0, 5000));
  check_refusal(with(train, {device}), 1,
                {images.string() + ", byte 16: values: the header declares 15680 bytes, but the file has 4984 more"});
}

TEST_CASE("devices are listed for people and for programs", "[cli]") {
  if (!command_is_there()) return;
  const Ended text = run_command({"devices"}), json = run_command({"devices", "--json"});
  CHECK(text.code == 0);
  CHECK(json.code == 0);
  const auto list = nlohmann::json::parse(json.out);
  const std::vector<DeviceInfo> expected = Device::list();
  REQUIRE(list.size() == expected.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    CHECK(list[i]["id"] == expected[i].id);
    CHECK(list[i]["name"] == expected[i].name);
    // A CPU tells what is free at the moment.
    if (expected[i].kind == DeviceKind::gpu) CHECK(list[i]["memory_bytes"] == expected[i].memory);
    CHECK_THAT(text.out, test::contains("\n" + expected[i].id + " ") && test::contains(expected[i].name));
  }
}

TEST_CASE("without any OpenCL driver the CPU is still there", "[cli]") {
  if (!command_is_there()) return;
  const Ended ended =
      run_command({"devices"}, {{"OCL_ICD_VENDORS", "/nonexistent"},  // of the loaders ocl-icd and Khronos's
                                {"OCL_ICD_FILENAMES", ""},
                                {"OPENCL_VENDOR_PATH", "/nonexistent"}});
  CHECK_THAT(ended.out, !test::contains("opencl:"));
  const std::vector<DeviceInfo> infos = Device::list();
  if (std::ranges::find(infos, "onednn", &DeviceInfo::backend) != infos.end()) {
    CHECK(ended.code == 0);
    CHECK_THAT(ended.out, test::contains("\ncpu "));
    const Ended automatic = run_command({"train", "mlp", "--data", "random", "--device", "auto", "--max-steps", "1"},
                                        {{"OCL_ICD_VENDORS", "/nonexistent"}});
    CHECK(automatic.code == 0);
  } else {
    CHECK(ended.code == 1);
    CHECK_THAT(ended.err, test::contains("no device was found") && test::contains("pocl-opencl-icd"));
  }
}

TEST_CASE("results that cannot be printed are a failure", "[cli]") {
  if (!command_is_there()) return;
  if (!std::filesystem::exists("/dev/full")) {
    WARN("skipped: this system has no /dev/full");
    return;
  }
  for (const Arguments& arguments : std::vector<Arguments>{{"devices"}, {"devices", "--json"}, {"--help"}}) {
    INFO(arguments.back());
    const Ended ended = run_command_in_shell("exec \"$@\" >/dev/full", arguments);
    CHECK(ended.code == 1);
    CHECK_THAT(ended.err, test::contains("concord: standard output cannot be written"));
  }
}

TEST_CASE("bench prints one JSON document", "[cli]") {
  if (!command_is_there()) return;
  const Ended ended = run_command(
      {"bench", "mlp", "--device", cheap_device(), "--batch", "4", "--seconds", "0.01", "--json", "--trace"});
  REQUIRE(ended.code == 0);
  const auto json = nlohmann::json::parse(ended.out);
  CHECK(json["net"] == "mlp");
  CHECK(json["batch"] == 4);
  CHECK(json["device"] == cheap_device());
  for (const char* phase : {"train", "infer"}) {
    INFO(phase);
    CHECK(json[phase]["median_ms"] > 0);
    CHECK(json[phase]["samples_per_second"] > 0);
    CHECK(json[phase]["trace"].size() >= 2);
  }
  const Ended first =
      run_command({"bench", "mlp", "--device", cheap_device(), "--batch", "4", "--first-step", "--json"});
  REQUIRE(first.code == 0);
  CHECK(nlohmann::json::parse(first.out)["start_to_first_step_s"] > 0);
}

TEST_CASE("a memory budget is kept, in any unit, or refused with the least that does", "[cli][recompute]") {
  if (!command_is_there()) return;
  const Arguments bench{"bench", "lenet", "--device", cheap_device(), "--batch", "64", "--seconds", "0.001"};
  const auto train_phase = [&](const Arguments& more) {
    const Ended ended = run_command(with(with(bench, {"--json"}), more));
    INFO(ended.err);
    REQUIRE(ended.code == 0);
    return nlohmann::json::parse(ended.out)["train"];
  };
  const auto kept = train_phase({});
  CHECK(kept["recomputed_launches"] == 0);
  const double bytes = kept["program_bytes"];
  for (const std::string& budget :
       {fmt::format("{:.0f}", bytes * 0.9), fmt::format("{} KiB", static_cast<int>(bytes * 0.9 / 1024)),
        fmt::format("{}MiB", bytes * 0.9 / (1 << 20))}) {
    INFO(budget);
    const auto within = train_phase({"--memory-budget", budget});
    CHECK(within["program_bytes"] <= bytes * 0.9);
    CHECK(within["recomputed_launches"] > 0);
    CHECK(within["launches"] == kept["launches"].get<int>() + within["recomputed_launches"].get<int>());
  }
  const Ended text = run_command(with(bench, {"--memory-budget", fmt::format("{:.0f}", bytes * 0.9)}));
  CHECK_THAT(text.out, test::contains("memory budget of the training step"));
  check_refusal(with(bench, {"--memory-budget", "1KiB"}), 1,
                {"the memory budget is 1.0 KiB", " bytes) with all possible"});
  const Arguments train{"train",       "lenet", "--data",  "random", "--device", cheap_device(),
                        "--max-steps", "1",     "--batch", "64",     "--quiet",  "--memory-budget"};
  CHECK(run_command(with(train, {"1GiB"})).code == 0);
  check_refusal(with(train, {"1KiB"}), 1, {"the memory budget is 1.0 KiB"});
}

TEST_CASE("every optimizer is counted, measured and trained with", "[cli]") {
  if (!command_is_there()) return;
  const std::vector<std::string> optimizers = std::apply(
      [](const auto&... defaults) { return std::vector<std::string>{defaults.rule().name...}; }, optim::Optimizers{});
  for (const std::string& optimizer : optimizers) {
    INFO(optimizer);
    const auto said = [&](const Arguments& arguments) {
      const Ended ended = run_command(with(arguments, {"--device", cheap_device(), "--optimizer", optimizer}));
      INFO(ended.err);
      CHECK(ended.code == 0);
    };
    said({"summary", "lenet", "--batch", "4"});
    said({"bench", "lenet", "--batch", "4", "--seconds", "0.001"});
    said({"train", "lenet", "--data", "random", "--max-steps", "1", "--batch", "4", "--quiet"});
  }
  const Ended models = run_command({"models", "--batch", "1", "--optimizer", "muon", "--json"});
  INFO(models.err);
  REQUIRE(models.code == 0);
  CHECK(nlohmann::json::parse(models.out).size() == concord::models::all().size());
}

TEST_CASE("models lists what no device takes too", "[cli]") {
  if (!command_is_there()) return;
  const Ended models = run_command({"models", "--batch", "2147483647", "--json"});
  INFO(models.err);
  REQUIRE(models.code == 0);
  const auto list = nlohmann::json::parse(models.out);
  REQUIRE(list.size() == concord::models::all().size());
  for (const auto& model : list) CHECK(model.at("step_bytes").is_null());
  CHECK_THAT(run_command({"models", "--batch", "2147483647"}).out, test::contains("too large"));
}

TEST_CASE("bench names the largest batch that fits", "[cli]") {
  if (!command_is_there()) return;
  const std::vector<std::string> words{"largest batch that fits is "};
  check_refusal({"bench", "vgg16", "--device", cheap_device(), "--batch", "20000"}, 1, words);
  for (const DevicePtr& device : devices()) {  // some have not the memory, some kernels that count no further
    const Arguments too_many{"lenet", "--batch", "100000000", "--device", device->info().id};
    check_refusal(with({"bench"}, too_many), 1, words);
    check_refusal(with({"profile", "--inference"}, too_many), 1, words);
    check_refusal(with({"summary"}, too_many), 1, words);
    check_refusal(
        {"compare", "mlp:depth=3,width=1048576", "--batch", "2", "--steps", "1", "--devices", device->info().id}, 1,
        {"Use a --batch smaller than 2"});
  }
}
